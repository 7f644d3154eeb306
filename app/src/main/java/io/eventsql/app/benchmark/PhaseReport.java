package io.eventsql.app.benchmark;

import com.fasterxml.jackson.annotation.JsonInclude;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * The counts of one runner's warm-up or measured events.
 *
 * @param received the handled events, including duplicates
 * @param distinct the distinct event numbers
 * @param duplicates the events whose number was received before
 * @param highestNumber the highest number, {@value #NO_NUMBER} if nothing was received
 * @param orderViolations the keyed events whose number is new, but not higher than all earlier ones of the key
 * @param handledBeforeIntended the events apparently handled before their intended send time, because the clocks of two
 *     machines differ; their latency counts as 0
 * @param firstHandledAtMicros the time when the first batch was handled, in epoch microseconds; 0 if nothing was
 *     received
 * @param lastHandledAtMicros the time when the last batch was handled
 * @param endToEndMicrosHistogram a copy of the latencies from the intended send until the batch was handled, in
 *     microseconds
 * @param detail the detail needed to merge reports of several members; {@code null} and omitted if not requested
 */
record PhaseReport(
        long received,
        long distinct,
        long duplicates,
        long highestNumber,
        long orderViolations,
        long handledBeforeIntended,
        long firstHandledAtMicros,
        long lastHandledAtMicros,
        Histogram endToEndMicrosHistogram,
        @JsonInclude(JsonInclude.Include.NON_NULL) @Nullable PhaseDetail detail) {
    static final long NO_NUMBER = -1;
}
