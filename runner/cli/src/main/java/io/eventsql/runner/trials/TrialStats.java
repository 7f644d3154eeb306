package io.eventsql.runner.trials;

import org.jspecify.annotations.Nullable;

/** Counts what became of the events of a trial, and how long that took. Thread-safe. */
final class TrialStats {

    /**
     * All answers of a trial.
     *
     * @param stored the events that were stored
     * @param failed those that were not
     * @param lastNanos when the last answer came, on the monotonic clock; 0 without any
     * @param latencyMeanNanos of a stored event's call; 0 without any
     * @param latencyStddevNanos the standard deviation of that
     * @param firstFailure why the first one failed; {@code null}: none did
     */
    record Totals(
            long stored,
            long failed,
            long lastNanos,
            double latencyMeanNanos,
            double latencyStddevNanos,
            @Nullable Throwable firstFailure) {}

    private long stored;
    private long failed;
    private long lastNanos;
    // Welford's: sums of squares of nanoseconds would lose the digits that matter.
    private double mean;
    private double squares;
    private @Nullable Throwable firstFailure;

    synchronized void recordStored(long calledNanos, long answeredNanos, int events) {
        lastNanos = answeredNanos;
        double latency = answeredNanos - calledNanos;
        double difference = latency - mean;
        stored += events;
        mean += difference * events / stored;
        squares += difference * (latency - mean) * events;
    }

    synchronized void recordFailed(long answeredNanos, long events, Throwable failure) {
        lastNanos = answeredNanos;
        failed += events;
        if (firstFailure == null) {
            firstFailure = failure;
        }
    }

    synchronized long answeredEvents() {
        return stored + failed;
    }

    synchronized Totals totals() {
        return new Totals(stored, failed, lastNanos, mean, stored == 0 ? 0 : Math.sqrt(squares / stored), firstFailure);
    }
}
