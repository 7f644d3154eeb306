package io.eventsql.runner.trials;

/**
 * One measured trial of a sweep.
 *
 * @param clusterType the standbys of each database
 * @param nodeCount the databases
 * @param eventType the events' form
 * @param bufferType {@code waiting} or {@code non-waiting}
 * @param bufferSizeBytes the most bytes of a call
 * @param eventCount the events that were stored
 * @param trial its number among those of the same number of events, from 1
 * @param durationMs from the first call to the last answer, in milliseconds
 * @param measuredOn when it began, ISO 8601 in UTC
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
        String measuredOn) {
    static final String CSV_HEADER = "cluster_type,node_count,event_type,buffer_type,buffer_size_bytes,event_count,"
            + "trial,duration_ms,measured_on";

    /** The row of a CSV file; no value holds a comma. */
    String csv() {
        return String.join(
                ",",
                clusterType,
                Integer.toString(nodeCount),
                eventType,
                bufferType,
                Integer.toString(bufferSizeBytes),
                Integer.toString(eventCount),
                Integer.toString(trial),
                Double.toString(durationMs),
                measuredOn);
    }
}
