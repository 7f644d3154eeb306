package io.eventsql.runner.spec;

import com.fasterxml.jackson.annotation.JsonProperty;

/**
 * What a search looks for: the highest rate at which a latency stays below a limit.
 *
 * @param latency which one
 * @param percentile of it, above 0 and up to 100
 * @param limitMs the limit, milliseconds
 * @param fromRate the lowest rate that is tried, events/s
 * @param toRate the highest, events/s
 * @param precision the search ends when what held and what did not are closer than this share
 */
public record SearchSpec(
        Latency latency, double percentile, double limitMs, long fromRate, long toRate, double precision) {

    /** A latency that may be limited. */
    public enum Latency {
        /** From the intended send to the acknowledgement. */
        @JsonProperty("publish")
        PUBLISH,
        /** From the intended send to the consumer. */
        @JsonProperty("end_to_end")
        END_TO_END
    }
}
