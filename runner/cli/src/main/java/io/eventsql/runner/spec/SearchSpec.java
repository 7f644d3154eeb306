package io.eventsql.runner.spec;

import com.fasterxml.jackson.annotation.JsonProperty;

/**
 * A search for the highest rate at which a latency stays below a limit.
 *
 * @param latency the limited latency
 * @param percentile the limited percentile, above 0 and up to 100
 * @param limitMs the limit in milliseconds
 * @param fromRate the lowest rate to try, in events/s
 * @param toRate the highest rate to try, in events/s
 * @param precision the relative distance between the highest sustained and the lowest failed rate at which the search
 *     ends
 */
public record SearchSpec(
        Latency latency, double percentile, double limitMs, long fromRate, long toRate, double precision) {

    /** The latencies that a search can limit. */
    public enum Latency {
        /** The time from the intended send to the acknowledgement. */
        @JsonProperty("publish")
        PUBLISH,
        /** The time from the intended send to the consumer. */
        @JsonProperty("end_to_end")
        END_TO_END
    }
}
