package io.eventsql.runner.trials;

/**
 * The outcome of a trial.
 *
 * @param durationNanos the time from the first call to the last answer
 * @param totals the totals of the trial
 * @param complete whether all calls were made; {@code false} after a stop signal
 */
record TrialOutcome(long durationNanos, TrialStats.Totals totals, boolean complete) {

    /** Returns whether all events were stored, so that the duration is valid. */
    boolean isValid() {
        return complete && totals.failed() == 0;
    }
}
