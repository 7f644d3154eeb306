package io.eventsql.runner.limits;

import java.sql.SQLException;
import java.time.Duration;

/**
 * One way to append or read, whose rate is compared with others.
 *
 * @param name the name shown in reports
 * @param interval its work
 */
record Variant(String name, Interval interval) {

    /** The work of a variant. */
    interface Interval {
        /**
         * Runs as fast as possible for about the given duration, or until the run is stopped.
         *
         * @throws SQLException if a statement fails
         * @throws IllegalStateException if an event could not be stored or read, so that there is no valid rate
         */
        MeasuredInterval run(Duration time) throws SQLException;
    }

    /** See {@link Interval#run}. */
    MeasuredInterval run(Duration time) throws SQLException {
        return interval.run(time);
    }
}
