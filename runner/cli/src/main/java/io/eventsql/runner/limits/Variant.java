package io.eventsql.runner.limits;

import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.PlainProgram;
import io.eventsql.runner.spec.PhaseSpec;
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

    /**
     * Returns a phase on a new stream in each turn, see {@link StreamLoad#turn}. The name is the phase's.
     *
     * @param what part of the stream's name
     */
    static Variant ofPhase(LimitsContext context, String what, LoadedStream loaded, PhaseSpec phase) {
        return new Variant(
                phase.name(), time -> StreamLoad.onNew(context, what, loaded, load -> load.turn(phase, time)));
    }

    /** Returns a plain program, with the rate at which its events arrive. */
    static Variant ofProgram(
            String name, PlainProgram program, DriverSettings settings, int callers, int eventsPerCall) {
        return new Variant(name, time -> {
            PlainProgram.Load load = new PlainProgram.Load(callers, false, eventsPerCall, 0, time.toNanos() / 1e9);
            try {
                double perSecond = program.run(settings, load).consumeRate();
                return MeasuredInterval.ofRate(perSecond, eventsPerCall, time);
            } catch (Exception e) {
                throw new IllegalStateException(name + " failed: " + e.getMessage(), e);
            }
        });
    }

    /** See {@link Interval#run}. */
    MeasuredInterval run(Duration time) throws SQLException {
        return interval.run(time);
    }
}
