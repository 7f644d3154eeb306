package io.eventsql.runner.trials;

/**
 * What a trial came to.
 *
 * @param durationNanos from the first call to the last answer
 * @param totals the answers
 * @param complete whether all calls were made; {@code false} after a stop signal
 */
record TrialOutcome(long durationNanos, TrialStats.Totals totals, boolean complete) {

    /** Whether it says how long all events take. */
    boolean isValid() {
        return complete && totals.failed() == 0;
    }
}
