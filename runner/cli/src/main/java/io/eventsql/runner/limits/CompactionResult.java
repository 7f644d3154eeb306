package io.eventsql.runner.limits;

import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.Statistics;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;

/**
 * A compacted stream under updates of the same few keys.
 *
 * @param intervals one element for each twentieth of the time
 * @param handledLastToSecondQuarter the events handled in the last quarter of the time, divided by those in the
 *     second quarter
 * @param bytesLastToSecondQuarter the mean size likewise
 */
public record CompactionResult(
        List<Interval> intervals, double handledLastToSecondQuarter, double bytesLastToSecondQuarter) {

    static final int INTERVALS = 20;

    /**
     * One interval.
     *
     * @param handledEvents the events that the consumer has handled
     * @param bytes the size of the stream's tables with indexes, at its end
     * @param tables the number of the stream's tables, likewise
     * @param latencyMs the time from the intended call to the acknowledgement
     */
    public record Interval(
            long publishedEvents,
            long failedEvents,
            long handledEvents,
            long bytes,
            long tables,
            Percentiles latencyMs) {}

    static CompactionResult of(List<Interval> intervals) {
        return new CompactionResult(
                intervals, lastToSecond(intervals, Interval::handledEvents), lastToSecond(intervals, Interval::bytes));
    }

    private static double lastToSecond(List<Interval> intervals, ToDoubleFunction<Interval> value) {
        int quarter = intervals.size() / 4;
        List<Interval> second = intervals.subList(quarter, 2 * quarter);
        List<Interval> last = intervals.subList(intervals.size() - quarter, intervals.size());
        return Statistics.ratio(mean(last, value), mean(second, value));
    }

    private static double mean(List<Interval> intervals, ToDoubleFunction<Interval> value) {
        return intervals.stream().mapToDouble(value).average().orElse(0);
    }

    /** Returns whether no publish failed. */
    boolean passed() {
        return intervals.stream().allMatch(interval -> interval.failedEvents() == 0);
    }

    List<String> lines() {
        List<String> lines = new ArrayList<>();
        lines.add("");
        lines.add("COMPACTION of a stream in which the same 100 keys are updated, with a consumer");
        lines.add(String.format(
                Locale.ROOT, "%-8s%12s%12s%10s%8s%10s", "", "published", "handled", "MB", "tables", "p99 ms"));
        for (int i = 0; i < intervals.size(); i++) {
            Interval interval = intervals.get(i);
            lines.add(String.format(
                    Locale.ROOT,
                    "%-8d%,12d%,12d%,10.1f%8d%10.1f",
                    i + 1,
                    interval.publishedEvents(),
                    interval.handledEvents(),
                    interval.bytes() / 1e6,
                    interval.tables(),
                    interval.latencyMs().p99()));
        }
        lines.add(String.format(
                Locale.ROOT,
                "Last quarter of the time / second quarter: handled %.3f, size %.3f",
                handledLastToSecondQuarter,
                bytesLastToSecondQuarter));
        return lines;
    }
}
