package io.eventsql.runner.trials;

/**
 * One measured trial of a sweep.
 *
 * @param clusterType the replication mode of each database
 * @param nodeCount the number of databases
 * @param eventType the type of events
 * @param bufferType {@code waiting} or {@code non-waiting}
 * @param bufferSizeBytes the maximum bytes per call
 * @param eventCount the stored events
 * @param trial the number of the trial among those with the same number of events, from 1
 * @param durationMs the time from the first call to the last answer, in milliseconds
 * @param measuredOn the start time, ISO 8601 in UTC
 */
public record SweepTrial(
        String clusterType,
        int nodeCount,
        String eventType,
        String bufferType,
        int bufferSizeBytes,
        int eventCount,
        int trial,
        double durationMs,
        String measuredOn) {}
