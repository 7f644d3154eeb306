package io.eventsql.runner.limits;

import io.eventsql.runner.limits.TimeSpans.Span;
import io.eventsql.runner.measure.Histograms;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.Statistics;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.HdrHistogram.Histogram;

/**
 * What happened while the slowest events were on their way.
 *
 * @param server the settings of the server, by name
 * @param rates the results by rate
 */
public record TailResult(Map<String, String> server, List<RateResult> rates) {
    private static final double SLOW_SHARE = 0.01;

    /**
     * The result at one rate.
     *
     * @param eventsPerSecond the rate
     * @param latencyMs the time from an event's intended publish time to its handler, in milliseconds
     * @param slowFromMs the smallest latency of the slowest percent
     * @param slowSeconds the time in which at least one of the slowest percent was on its way
     * @param otherSeconds the remaining time
     * @param samplerShare the CPU time of the sampler, as a share of the machine's
     * @param circumstances what was seen, the most specific for slow events first
     */
    public record RateResult(
            long eventsPerSecond,
            Percentiles latencyMs,
            double slowFromMs,
            double slowSeconds,
            double otherSeconds,
            double samplerShare,
            List<Circumstance> circumstances) {}

    /**
     * How often something was seen.
     *
     * @param slowEventsShare the share of the slowest percent of events during which it was seen
     * @param slowTimeShare the share of the time with slow events on their way
     * @param otherTimeShare the share of the remaining time
     */
    public record Circumstance(String what, double slowEventsShare, double slowTimeShare, double otherTimeShare) {}

    /**
     * Attributes the slowest percent of events.
     *
     * @param events the time of each event from its intended publish time to its handler
     * @param samples what was seen, in any order; periods may overlap
     */
    static RateResult attribute(
            long eventsPerSecond, List<Span> events, List<ActivitySample> samples, double samplerShare) {
        List<Span> slow = events.stream()
                .sorted(Comparator.comparingLong(Span::micros).reversed())
                .limit((long) Math.ceil(events.size() * SLOW_SHARE))
                .toList();
        TimeSpans all = TimeSpans.union(events);
        TimeSpans slowTimes = TimeSpans.union(slow);
        double slowMicros = (double) slowTimes.micros();
        double otherMicros = all.micros() - slowMicros;
        Map<String, List<Span>> periods = new TreeMap<>();
        for (ActivitySample sample : samples) {
            sample.seen()
                    .forEach(what -> periods.computeIfAbsent(what, any -> new ArrayList<>())
                            .add(sample.period()));
        }
        List<Circumstance> circumstances = new ArrayList<>();
        periods.forEach((what, spans) -> {
            TimeSpans times = TimeSpans.union(spans).intersection(all);
            double inSlow = (double) times.intersection(slowTimes).micros();
            circumstances.add(new Circumstance(
                    what,
                    Statistics.ratio(
                            (double) slow.stream().filter(times::overlaps).count(), slow.size()),
                    Statistics.ratio(inSlow, slowMicros),
                    Statistics.ratio(times.micros() - inSlow, otherMicros)));
        });
        circumstances.sort(Comparator.comparingDouble((Circumstance c) -> c.slowTimeShare - c.otherTimeShare)
                .reversed());
        Histogram micros = Histograms.create();
        events.forEach(event -> micros.recordValue(Math.max(0, event.micros())));
        return new RateResult(
                eventsPerSecond,
                Percentiles.ofMicros(micros),
                slow.getLast().micros() / 1e3,
                slowMicros / 1e6,
                otherMicros / 1e6,
                samplerShare,
                circumstances);
    }

    List<String> lines() {
        List<String> lines = new ArrayList<>();
        lines.add("");
        lines.add("TAIL: what was seen while the slowest percent of events was on its way from publish to handler");
        for (RateResult rate : rates) {
            lines.add(String.format(
                    Locale.ROOT,
                    "%,d/s: p50 %.1f ms, p99 %.1f ms, max %.1f ms; slow from %.1f ms, during %.1f s of %.1f s;"
                            + " the sampler took %.2f %% of the machine",
                    rate.eventsPerSecond,
                    rate.latencyMs.p50(),
                    rate.latencyMs.p99(),
                    rate.latencyMs.max(),
                    rate.slowFromMs,
                    rate.slowSeconds,
                    rate.slowSeconds + rate.otherSeconds,
                    rate.samplerShare * 100));
            lines.add(String.format(Locale.ROOT, "  %-52s%12s%12s%12s", "", "slow events", "slow time", "other time"));
            for (Circumstance circumstance : rate.circumstances) {
                lines.add(String.format(
                        Locale.ROOT,
                        "  %-52s%10.1f %%%10.1f %%%10.1f %%",
                        circumstance.what,
                        circumstance.slowEventsShare * 100,
                        circumstance.slowTimeShare * 100,
                        circumstance.otherTimeShare * 100));
            }
        }
        lines.add(server.toString());
        return lines;
    }
}
