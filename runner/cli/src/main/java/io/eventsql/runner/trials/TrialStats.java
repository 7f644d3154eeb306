package io.eventsql.runner.trials;

import io.eventsql.runner.load.LoadListener;
import org.jspecify.annotations.Nullable;

/** Statistics of the events of a trial. Thread-safe. */
final class TrialStats implements LoadListener {

    /**
     * The outcome of a trial.
     *
     * @param durationNanos the time from the first call to the last answer; 0 if there was none
     * @param complete whether all calls were made; {@code false} after a stop signal
     * @param stored the stored events
     * @param failed the failed events
     * @param latencyMeanNanos the mean latency of the calls of stored events; 0 if there were none
     * @param latencyStddevNanos the standard deviation of the latency
     * @param firstFailure the first failure; {@code null} if there was none
     */
    record Outcome(
            long durationNanos,
            boolean complete,
            long stored,
            long failed,
            double latencyMeanNanos,
            double latencyStddevNanos,
            @Nullable Throwable firstFailure) {}

    private long stored;
    private long failed;
    private long lastNanos;
    // Welford's algorithm, because sums of squared nanoseconds would lose precision.
    private double mean;
    private double squares;
    private @Nullable Throwable firstFailure;

    @Override
    public void called(long intendedNanos, long calledNanos) {}

    @Override
    public synchronized void acknowledged(long intendedNanos, long calledNanos, long answeredNanos, int events) {
        lastNanos = answeredNanos;
        double latency = answeredNanos - calledNanos;
        double difference = latency - mean;
        stored += events;
        mean += difference * events / stored;
        squares += difference * (latency - mean) * events;
    }

    @Override
    public synchronized void failed(long intendedNanos, long answeredNanos, int events, Throwable failure) {
        lastNanos = answeredNanos;
        failed += events;
        if (firstFailure == null) {
            firstFailure = failure;
        }
    }

    @Override
    public synchronized long answeredEvents() {
        return stored + failed;
    }

    synchronized Outcome outcome(long startNanos, boolean complete) {
        double stddev = stored == 0 ? 0 : Math.sqrt(squares / stored);
        return new Outcome(Math.max(0, lastNanos - startNanos), complete, stored, failed, mean, stddev, firstFailure);
    }
}
