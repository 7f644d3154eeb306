package io.eventsql.runner.limits;

import java.sql.SQLException;
import java.time.Duration;

/** One way to append or read, whose rate is compared with others. */
interface Variant {

    /** Returns the name shown in reports. */
    String name();

    /**
     * Runs as fast as possible for about the given duration, or until the run is stopped.
     *
     * @throws SQLException if a statement fails
     * @throws IllegalStateException if an event could not be stored or read, so that there is no valid rate
     */
    MeasuredInterval run(Duration time) throws SQLException;

    /** The work of a variant, see {@link Variant#run}. */
    interface Interval {
        MeasuredInterval run(Duration time) throws SQLException;
    }

    /** Returns a variant of the given name. */
    static Variant of(String name, Interval interval) {
        return new Variant() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public MeasuredInterval run(Duration time) throws SQLException {
                return interval.run(time);
            }
        };
    }
}
