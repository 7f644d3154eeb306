package io.eventsql.runner.limits;

import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.RatioInterval;
import io.eventsql.runner.measure.Statistics;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/**
 * The result of the benchmark of scheduled events.
 *
 * @param scheduledEvents the number of events scheduled, due in a month and later
 * @param none the rounds without them
 * @param pending the rounds with them
 * @param due events that are due at a steady rate
 */
public record ScheduledResult(long scheduledEvents, List<Round> none, List<Round> pending, Due due) {

    /**
     * A round.
     *
     * @param eventsPerSecond published as fast as possible, without waiting for answers
     * @param latencyMs at a steady rate, one event per call
     * @param failedEvents of the steady rate
     */
    public record Round(double eventsPerSecond, Percentiles latencyMs, long failedEvents) {}

    /**
     * Events that are due at a steady rate.
     *
     * @param events the number scheduled
     * @param stored the number stored
     * @param distinct the number of distinct ones stored
     * @param early the number stored before they were due
     * @param appendLateMsP50 the median time from when an event is due until it is appended, before its commit, in milliseconds
     * @param appendLateMsP99 the 99th percentile of that
     * @param lateMs the time from when an event is due until it is handled, in milliseconds
     */
    public record Due(
            long events,
            long stored,
            long distinct,
            long early,
            double appendLateMsP50,
            double appendLateMsP99,
            Percentiles lateMs) {}

    /** Returns whether no event failed, was lost, stored twice or stored early. */
    boolean passed() {
        return due.stored() == due.events()
                && due.distinct() == due.events()
                && due.early() == 0
                && Stream.concat(none.stream(), pending.stream()).allMatch(round -> round.failedEvents() == 0);
    }

    List<String> lines() {
        List<String> lines = new ArrayList<>();
        lines.add("");
        lines.add(String.format(Locale.ROOT, "SCHEDULED: %,d events, and none", scheduledEvents));
        lines.add(line("none", none));
        lines.add(line("scheduled", pending));
        lines.add("scheduled / none, median of the rounds (95 % interval): rate "
                + RatioInterval.of(rates(none), rates(pending)).text()
                + ", p99 "
                + RatioInterval.of(p99s(none), p99s(pending)).text());
        lines.add(String.format(
                Locale.ROOT,
                "due at 1,000/s until appended: p50 %.1f ms, p99 %.1f ms; until handled: p50 %.1f ms, p99 %.1f ms, max %.1f ms;"
                        + " %,d of %,d stored, %,d distinct, %,d early",
                due.appendLateMsP50(),
                due.appendLateMsP99(),
                due.lateMs().p50(),
                due.lateMs().p99(),
                due.lateMs().max(),
                due.stored(),
                due.events(),
                due.distinct(),
                due.early()));
        return lines;
    }

    private static String line(String name, List<Round> rounds) {
        return String.format(
                Locale.ROOT,
                "%-12s%,12.0f events/s%10.2f ms p99 at a steady rate",
                name,
                Statistics.median(rates(rounds)),
                Statistics.median(p99s(rounds)));
    }

    private static List<Double> rates(List<Round> rounds) {
        return rounds.stream().map(Round::eventsPerSecond).toList();
    }

    private static List<Double> p99s(List<Round> rounds) {
        return rounds.stream().map(round -> round.latencyMs().p99()).toList();
    }
}
