package io.eventsql.runner.limits;

import com.fasterxml.jackson.annotation.JsonValue;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.Statistics;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * Publishing while retention expires segments, and into segments that are full within a second.
 *
 * @param readers the intervals by the reader of the stream
 * @param expiredEvents the events that expired in the database
 * @param keptEventsMin the smallest number of events left in a partition
 * @param missingEvents the events missing between the log's start and its head
 * @param burst the fast change of segments
 */
public record RetentionResult(
        List<OfReader> readers, long expiredEvents, long keptEventsMin, long missingEvents, Burst burst) {

    /** A transaction that is idle after it has read an event of the stream by SQL. */
    public enum Reader {
        NONE("no reader"),
        OF_KEPT_SEGMENT("idle reader of another segment"),
        OF_EXPIRING_SEGMENT("idle reader of the expiring segment");

        private final String label;

        Reader(String label) {
            this.label = label;
        }

        @JsonValue
        String label() {
            return label;
        }
    }

    /**
     * One interval.
     *
     * @param latencyMs the time from a call to its acknowledgement
     * @param returnedSeconds after how many seconds all expired segments were empty: after the load with a reader that stays,
     *     otherwise after the reader has ended, too
     */
    public record Interval(long events, long failedEvents, Percentiles latencyMs, double returnedSeconds) {}

    /**
     * The intervals with one kind of reader.
     *
     * @param p99Ms the median of the intervals
     * @param p99ToNone the same, divided by that without a reader
     * @param returnedSecondsMax the largest of the intervals
     */
    public record OfReader(
            Reader reader, List<Interval> intervals, double p99Ms, double p99ToNone, double returnedSecondsMax) {}

    /**
     * Publishing at a fixed rate in calls of 100 events, each segment of 10,000 events.
     *
     * @param segments the number of segments that were filled
     * @param latencyMs the time from the intended call to the acknowledgement
     */
    public record Burst(
            long eventsPerSecond, int seconds, long events, long failedEvents, long segments, Percentiles latencyMs) {}

    static RetentionResult of(
            Map<Reader, List<Interval>> intervals, long expired, long keptMin, long missing, Burst burst) {
        double none = p99(intervals.getOrDefault(Reader.NONE, List.of()));
        return new RetentionResult(
                intervals.entrySet().stream()
                        .map(each -> new OfReader(
                                each.getKey(),
                                each.getValue(),
                                p99(each.getValue()),
                                Statistics.ratio(p99(each.getValue()), none),
                                each.getValue().stream()
                                        .mapToDouble(Interval::returnedSeconds)
                                        .max()
                                        .orElse(0)))
                        .toList(),
                expired,
                keptMin,
                missing,
                burst);
    }

    private static double p99(List<Interval> intervals) {
        return Statistics.median(
                intervals.stream().map(interval -> interval.latencyMs().p99()).toList());
    }

    /** Returns whether no publish failed and no event within the policy is missing. */
    boolean passed() {
        return missingEvents == 0
                && burst.failedEvents() == 0
                && readers.stream()
                        .flatMap(each -> each.intervals().stream())
                        .allMatch(each -> each.failedEvents() == 0);
    }

    List<String> lines() {
        List<String> lines = new ArrayList<>();
        lines.add("");
        lines.add("RETENTION publishing one by one at full rate while segments of 10,000 events expire");
        for (OfReader each : readers) {
            lines.add(String.format(
                    Locale.ROOT,
                    "%-38s p99 %.1f ms (%s), %.2f of that without; space returned within %.1f s",
                    each.reader().label(),
                    each.p99Ms(),
                    each.intervals().stream()
                            .map(i -> String.format(
                                    Locale.ROOT, "%.1f", i.latencyMs().p99()))
                            .collect(Collectors.joining(", ")),
                    each.p99ToNone(),
                    each.returnedSecondsMax()));
        }
        lines.add(String.format(
                Locale.ROOT,
                "%,d events expired; at least %,d left in each partition, %,d missing",
                expiredEvents,
                keptEventsMin,
                missingEvents));
        lines.add(String.format(
                Locale.ROOT,
                "Burst: %,d events/s for %d s into segments of 10,000 events: %,d stored in %,d segments, %,d failed; p50 %.1f,"
                        + " p99 %.1f, max %.1f ms",
                burst.eventsPerSecond(),
                burst.seconds(),
                burst.events(),
                burst.segments(),
                burst.failedEvents(),
                burst.latencyMs().p50(),
                burst.latencyMs().p99(),
                burst.latencyMs().max()));
        return lines;
    }
}
