package io.eventsql.runner.consumption;

import org.jspecify.annotations.Nullable;

/**
 * How a warm-up ended.
 *
 * @param seconds its duration
 * @param untilWarm whether it was to last until the JVMs hardly compile, instead of a fixed time
 * @param warm whether the JVMs hardly compiled at its end; false if that was not observed
 * @param compilationMsPerSecond the compilation time of this runner and the apps per second at its end, in
 *     milliseconds; {@code null} if it was not observed
 */
public record WarmupOutcome(
        double seconds,
        boolean untilWarm,
        boolean warm,
        @Nullable Double compilationMsPerSecond) {

    /** Returns the outcome of a warm-up of a fixed duration. */
    public static WarmupOutcome fixed(double seconds) {
        return new WarmupOutcome(seconds, false, false, null);
    }
}
