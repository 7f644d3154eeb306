package io.eventsql.runner.trials;

/**
 * One measured burst.
 *
 * @param trial the number of the trial, from 1
 * @param durationSeconds the time from the first call to the last answer
 * @param events the stored messages
 * @param dataBytes the bytes of the stored messages
 * @param failures the failed messages
 * @param throughputEventsPerSecond the stored messages divided by the duration
 * @param bandwidthMbPerSecond their size in 10^6 bytes divided by the duration
 * @param latencyMeanMs the mean time from the call of a message to its answer
 * @param latencyStddevMs the standard deviation of that time
 */
public record BlastTrial(
        int trial,
        double durationSeconds,
        long events,
        long dataBytes,
        long failures,
        double throughputEventsPerSecond,
        double bandwidthMbPerSecond,
        double latencyMeanMs,
        double latencyStddevMs) {
    private static final double NANOS_PER_SECOND = 1e9;
    private static final double NANOS_PER_MS = 1e6;
    private static final double BYTES_PER_MB = 1e6;

    static BlastTrial of(int trial, TrialStats.Outcome outcome, int eventBytes) {
        double seconds = outcome.durationNanos() / NANOS_PER_SECOND;
        long bytes = outcome.stored() * eventBytes;
        return new BlastTrial(
                trial,
                seconds,
                outcome.stored(),
                bytes,
                outcome.failed(),
                seconds > 0 ? outcome.stored() / seconds : 0,
                seconds > 0 ? bytes / BYTES_PER_MB / seconds : 0,
                outcome.latencyMeanNanos() / NANOS_PER_MS,
                outcome.latencyStddevNanos() / NANOS_PER_MS);
    }
}
