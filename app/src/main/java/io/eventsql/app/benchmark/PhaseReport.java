package io.eventsql.app.benchmark;

import com.fasterxml.jackson.annotation.JsonInclude;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * What arrived of one runner's warm-up or measured events.
 *
 * @param received events handled, repeated ones included
 * @param distinct different numbers among them
 * @param duplicates events whose number had come before
 * @param highestNumber the highest number, {@value #NO_NUMBER} if nothing was received
 * @param orderViolations events with a key whose number is new, but not higher than all earlier ones of that key
 * @param handledBeforeIntended events that seem to have been handled before they were to be sent: the clocks of two
 *     machines differ; their latency counts as 0
 * @param firstHandledAtMicros when the first batch was handled, in microseconds since 1970; 0 if nothing was received
 * @param lastHandledAtMicros when the last batch was handled
 * @param endToEndMicrosHistogram latencies from the intended send time until the batch was handled, in microseconds; a
 *     copy
 * @param detail what unites the counts of several members; {@code null} and left out where nobody asked for it
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
