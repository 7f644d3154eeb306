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
 * @param minutes one element for each minute
 * @param handledLastToSecondQuarter the events handled per minute in the last quarter of the time, divided by those in the
 *     second quarter
 * @param bytesLastToSecondQuarter the mean size likewise
 */
public record CompactionResult(
        List<Minute> minutes, double handledLastToSecondQuarter, double bytesLastToSecondQuarter) {

    /**
     * One minute.
     *
     * @param handledEvents the events that the consumer has handled
     * @param bytes the size of the stream's tables with indexes, at the end of the minute
     * @param tables the number of the stream's tables, likewise
     * @param latencyMs the time from the intended call to the acknowledgement
     */
    public record Minute(
            long publishedEvents,
            long failedEvents,
            long handledEvents,
            long bytes,
            long tables,
            Percentiles latencyMs) {}

    static CompactionResult of(List<Minute> minutes) {
        return new CompactionResult(
                minutes, lastToSecond(minutes, Minute::handledEvents), lastToSecond(minutes, Minute::bytes));
    }

    private static double lastToSecond(List<Minute> minutes, ToDoubleFunction<Minute> value) {
        int quarter = Math.max(1, minutes.size() / 4);
        List<Minute> second = minutes.subList(Math.min(quarter, minutes.size() - 1), Math.min(2 * quarter, minutes.size()));
        List<Minute> last = minutes.subList(minutes.size() - quarter, minutes.size());
        return Statistics.ratio(mean(last, value), mean(second, value));
    }

    private static double mean(List<Minute> minutes, ToDoubleFunction<Minute> value) {
        return minutes.stream().mapToDouble(value).average().orElse(0);
    }

    /** Returns whether no publish failed. */
    boolean passed() {
        return minutes.stream().allMatch(minute -> minute.failedEvents() == 0);
    }

    List<String> lines() {
        List<String> lines = new ArrayList<>();
        lines.add("");
        lines.add("COMPACTION of a stream in which the same 100 keys are updated, with a consumer");
        lines.add(String.format(
                Locale.ROOT, "%-8s%12s%12s%10s%8s%10s", "minute", "published", "handled", "MB", "tables", "p99 ms"));
        for (int i = 0; i < minutes.size(); i++) {
            Minute minute = minutes.get(i);
            lines.add(String.format(
                    Locale.ROOT,
                    "%-8d%,12d%,12d%,10.1f%8d%10.1f",
                    i + 1,
                    minute.publishedEvents(),
                    minute.handledEvents(),
                    minute.bytes() / 1e6,
                    minute.tables(),
                    minute.latencyMs().p99()));
        }
        lines.add(String.format(
                Locale.ROOT,
                "Last quarter of the time / second quarter: handled per minute %.3f, size %.3f",
                handledLastToSecondQuarter,
                bytesLastToSecondQuarter));
        return lines;
    }
}
