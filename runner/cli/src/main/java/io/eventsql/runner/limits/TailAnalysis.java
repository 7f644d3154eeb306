package io.eventsql.runner.limits;

import io.eventsql.runner.limits.TimeSpans.Span;
import io.eventsql.runner.measure.Histograms;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.Statistics;
import io.eventsql.runner.result.Figure;
import io.eventsql.runner.result.PartRecorder;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.HdrHistogram.Histogram;

/** Attributes the slowest percent of events to what was seen while they were on their way. */
final class TailAnalysis {
    private static final double SLOW_SHARE = 0.01;
    private static final double PERCENT = 100;

    private TailAnalysis() {}

    /**
     * How often something was seen, in percent.
     *
     * @param slowEvents of the slowest percent of events, during how many it was seen
     * @param slowTime of the time with slow events on their way
     * @param otherTime of the remaining time
     */
    private record Circumstance(String what, double slowEvents, double slowTime, double otherTime) {}

    /**
     * Adds latencies and circumstances, the most specific for slow events first. Returns the latencies.
     *
     * @param rate the rate, which names the tables
     * @param events the time of each event from its intended publish time to its handler, at least one
     * @param samples what was seen, in any order; periods may overlap
     */
    static Percentiles addTo(PartRecorder part, String rate, List<Span> events, List<ActivitySampler.Sample> samples) {
        List<Span> slow = events.stream()
                .sorted(Comparator.comparingLong(Span::micros).reversed())
                .limit((long) Math.ceil(events.size() * SLOW_SHARE))
                .toList();
        TimeSpans all = TimeSpans.union(events);
        TimeSpans slowTimes = TimeSpans.union(slow);
        Histogram micros = Histograms.create();
        events.forEach(event -> micros.recordValue(Math.max(0, event.micros())));
        Percentiles latency = Percentiles.ofMicros(micros);
        part.addLatency("rates", rate, "", latency)
                .add("rates", rate, "slow_from_ms", Figure.of(slow.getLast().micros() / 1e3, "ms"))
                .add("rates", rate, "slow_during_s", Figure.of(slowTimes.micros() / 1e6, "s"))
                .add("rates", rate, "of_s", Figure.of(all.micros() / 1e6, "s"));
        String table = rate + ", of the time";
        for (Circumstance seen : circumstances(all, slow, slowTimes, samples)) {
            part.add(table, seen.what, "slow events", Figure.of(seen.slowEvents, "%"))
                    .add(table, seen.what, "slow time", Figure.of(seen.slowTime, "%"))
                    .add(table, seen.what, "other time", Figure.of(seen.otherTime, "%"));
        }
        return latency;
    }

    private static List<Circumstance> circumstances(
            TimeSpans all, List<Span> slow, TimeSpans slowTimes, List<ActivitySampler.Sample> samples) {
        Map<String, List<Span>> periods = new TreeMap<>();
        for (ActivitySampler.Sample sample : samples) {
            sample.seen()
                    .forEach(what -> periods.computeIfAbsent(what, any -> new ArrayList<>())
                            .add(sample.period()));
        }
        double slowMicros = (double) slowTimes.micros();
        double otherMicros = all.micros() - slowMicros;
        List<Circumstance> circumstances = new ArrayList<>();
        periods.forEach((what, spans) -> {
            TimeSpans times = TimeSpans.union(spans).intersection(all);
            double inSlow = (double) times.intersection(slowTimes).micros();
            long slowEvents = slow.stream().filter(times::overlaps).count();
            circumstances.add(new Circumstance(
                    what,
                    PERCENT * Statistics.ratio((double) slowEvents, slow.size()),
                    PERCENT * Statistics.ratio(inSlow, slowMicros),
                    PERCENT * Statistics.ratio(times.micros() - inSlow, otherMicros)));
        });
        circumstances.sort(Comparator.comparingDouble((Circumstance seen) -> seen.otherTime - seen.slowTime));
        return circumstances;
    }
}
