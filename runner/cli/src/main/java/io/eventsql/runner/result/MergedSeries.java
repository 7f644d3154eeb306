package io.eventsql.runner.result;

import io.eventsql.runner.measure.Histograms;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.TimeSeries;
import io.eventsql.runner.sample.ResourceSeries;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * Merges the time series of several runners and of the app second by second. All runners start at the same time, at a
 * full second of the app's clock.
 */
public final class MergedSeries {
    private static final String OWN = "runner.";

    private final List<RunnerResult.Series> runners;
    private final Map<Long, Histogram> consumed;
    private final long firstSecond;
    private final List<Integer> times;

    /**
     * @param runners the series of the runners, in the order of their numbers
     * @param consumed the end-to-end latencies by epoch second
     * @param firstSecond the epoch second in which all runners started
     */
    MergedSeries(List<RunnerResult.Series> runners, Map<Long, Histogram> consumed, long firstSecond) {
        this.runners = runners;
        this.consumed = consumed;
        this.firstSecond = firstSecond;
        int seconds = runners.stream()
                .mapToInt(runner -> runner.seconds().t().size())
                .max()
                .orElse(0);
        this.times = IntStream.range(0, seconds).boxed().toList();
    }

    /** Returns the epoch second of second 0. */
    public long firstSecond() {
        return firstSecond;
    }

    /** Returns the merged table, without what the apps know if they did not report seconds. */
    public TimeSeries seconds() {
        List<TimeSeries.Row> rows = new ArrayList<>();
        boolean known = !consumed.isEmpty();
        long open = 0;
        for (int t : times) {
            Histogram publish = publishMicros(t);
            Histogram endToEnd = endToEndMicros(t);
            long published = sum(TimeSeries::publishRate, t);
            long handled = endToEnd == null ? 0 : endToEnd.getTotalCount();
            open += published - handled;
            rows.add(new TimeSeries.Row(
                    phase(t),
                    sum(TimeSeries::offeredRate, t),
                    published,
                    known ? Long.valueOf(handled) : null,
                    sum(TimeSeries::failed, t),
                    sum(TimeSeries::missed, t),
                    sum(TimeSeries::inFlight, t),
                    // Clamped to 0, because a handler may be faster than the acknowledgement.
                    known ? Double.valueOf((double) Math.max(0, open)) : null,
                    publish == null ? null : Percentiles.ofMicros(publish),
                    endToEnd == null ? null : Percentiles.ofMicros(endToEnd)));
        }
        return TimeSeries.of(rows);
    }

    private @Nullable String phase(int t) {
        for (RunnerResult.Series runner : runners) {
            String phase = valueAt(runner.seconds().phase(), t);
            if (phase != null) {
                return phase;
            }
        }
        return null;
    }

    /** Returns the publish latencies of a second of the table in microseconds; {@code null} if there are none. */
    public @Nullable Histogram publishMicros(int t) {
        List<Histogram> ofRunners = new ArrayList<>();
        for (RunnerResult.Series runner : runners) {
            String encoded = valueAt(runner.publishMicrosHistograms(), t);
            if (encoded != null) {
                ofRunners.add(Histograms.decode(encoded));
            }
        }
        return ofRunners.isEmpty() ? null : Histograms.merge(ofRunners);
    }

    /** Returns the end-to-end latencies of a second of the table in microseconds; {@code null} if there are none. */
    public @Nullable Histogram endToEndMicros(int t) {
        return consumed.get(firstSecond + t);
    }

    private long sum(Function<TimeSeries, List<@Nullable Double>> column, int t) {
        double sum = 0;
        for (RunnerResult.Series runner : runners) {
            Double value = valueAt(column.apply(runner.seconds()), t);
            sum += value == null ? 0 : value;
        }
        return Math.round(sum);
    }

    private static <T> @Nullable T valueAt(List<@Nullable T> column, int t) {
        return t < column.size() ? column.get(t) : null;
    }

    /** Returns the merged resource usage. Columns of the runners' own processes are numbered if there are several. */
    public ResourceSeries resources() {
        Map<String, List<@Nullable Double>> columns = new LinkedHashMap<>();
        for (int number = 0; number < runners.size(); number++) {
            String own = runners.size() == 1 ? OWN : "runner-" + number + ".";
            runners.get(number).resources().columns().forEach((name, values) -> {
                List<@Nullable Double> column = new ArrayList<>();
                times.forEach(t -> column.add(t < values.size() ? values.get(t) : null));
                columns.put(name.startsWith(OWN) ? own + name.substring(OWN.length()) : name, column);
            });
        }
        return new ResourceSeries(1, times, columns);
    }
}
