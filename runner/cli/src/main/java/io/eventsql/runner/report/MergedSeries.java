package io.eventsql.runner.report;

import io.eventsql.runner.measure.Histograms;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.series.TimeSeries;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * Merges the time series of several runners and of the app second by second. All runners start at the same time, at a
 * full second of the app's clock.
 */
public final class MergedSeries {
    private static final String OWN = "runner.";
    private static final double MICROS_PER_MILLI = 1_000.0;

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

    /** Returns the merged table. */
    public TimeSeries seconds() {
        List<@Nullable Double> published = sums(TimeSeries::publishRate);
        List<@Nullable Double> consumeRate = consumeRate();
        return new TimeSeries(
                1,
                times,
                phases(),
                sums(TimeSeries::offeredRate),
                published,
                consumeRate,
                sums(TimeSeries::failed),
                sums(TimeSeries::missed),
                sums(TimeSeries::inFlight),
                lag(published, consumeRate),
                percentiles(this::publishMicros, 50),
                percentiles(this::publishMicros, 99),
                percentiles(this::publishMicros, 100),
                percentiles(this::endToEndMicros, 50),
                percentiles(this::endToEndMicros, 99));
    }

    private List<@Nullable String> phases() {
        List<@Nullable String> phases = new ArrayList<>();
        times.forEach(t -> phases.add(phase(t)));
        return phases;
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

    /** Returns no values instead of zeros if the apps did not report seconds. */
    private List<@Nullable Double> consumeRate() {
        List<@Nullable Double> rates = new ArrayList<>();
        for (int t : times) {
            Histogram micros = endToEndMicros(t);
            long handled = micros == null ? 0 : micros.getTotalCount();
            rates.add(consumed.isEmpty() ? null : Double.valueOf((double) handled));
        }
        return rates;
    }

    /** Clamped to 0, because a handler may be faster than the acknowledgement. */
    private static List<@Nullable Double> lag(List<@Nullable Double> published, List<@Nullable Double> consumed) {
        List<@Nullable Double> lag = new ArrayList<>();
        double open = 0;
        for (int t = 0; t < published.size(); t++) {
            Double in = published.get(t);
            Double out = consumed.get(t);
            open += (in == null ? 0 : in) - (out == null ? 0 : out);
            lag.add(out == null ? null : Double.valueOf(Math.max(0, open)));
        }
        return lag;
    }

    private List<@Nullable Double> percentiles(IntFunction<@Nullable Histogram> ofSecond, double percentile) {
        List<@Nullable Double> values = new ArrayList<>();
        for (int t : times) {
            Histogram micros = ofSecond.apply(t);
            values.add(
                    micros == null ? null : Double.valueOf(micros.getValueAtPercentile(percentile) / MICROS_PER_MILLI));
        }
        return values;
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

    private List<@Nullable Double> sums(Function<TimeSeries, List<@Nullable Double>> column) {
        List<@Nullable Double> sums = new ArrayList<>();
        for (int t : times) {
            double sum = 0;
            for (RunnerResult.Series runner : runners) {
                Double value = valueAt(column.apply(runner.seconds()), t);
                sum += value == null ? 0 : value;
            }
            sums.add(sum);
        }
        return sums;
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
