package io.eventsql.runner.report;

import io.eventsql.runner.measure.Histograms;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.series.TimeSeries;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/** Puts the seconds of several runners together: all began at the same moment, so second by second. */
final class MergedSeries {
    private static final String OWN = "runner.";

    private final List<RunnerSeries> runners;
    private final List<Integer> times;

    /** @param runners in the order of their numbers */
    MergedSeries(List<RunnerSeries> runners) {
        this.runners = runners;
        int seconds = runners.stream()
                .mapToInt(runner -> runner.seconds().t().size())
                .max()
                .orElse(0);
        this.times = IntStream.range(0, seconds).boxed().toList();
    }

    TimeSeries seconds() {
        List<@Nullable Double> nothing = new ArrayList<>();
        times.forEach(t -> nothing.add(null));
        List<@Nullable String> phases = new ArrayList<>();
        List<@Nullable Double> p50 = new ArrayList<>();
        List<@Nullable Double> p99 = new ArrayList<>();
        List<@Nullable Double> max = new ArrayList<>();
        for (int t : times) {
            phases.add(phase(t));
            Histogram micros = publishMicros(t);
            boolean any = micros.getTotalCount() > 0;
            p50.add(any ? micros.getValueAtPercentile(50) / 1_000.0 : null);
            p99.add(any ? micros.getValueAtPercentile(99) / 1_000.0 : null);
            max.add(any ? micros.getMaxValue() / 1_000.0 : null);
        }
        return new TimeSeries(
                1,
                times,
                phases,
                sums(TimeSeries::offeredRate),
                sums(TimeSeries::publishRate),
                nothing,
                sums(TimeSeries::failed),
                sums(TimeSeries::missed),
                sums(TimeSeries::inFlight),
                nothing,
                p50,
                p99,
                max,
                nothing,
                nothing);
    }

    private @Nullable String phase(int t) {
        for (RunnerSeries runner : runners) {
            String phase = at(runner.seconds().phase(), t);
            if (phase != null) {
                return phase;
            }
        }
        return null;
    }

    private Histogram publishMicros(int t) {
        List<Histogram> ofRunners = new ArrayList<>();
        for (RunnerSeries runner : runners) {
            String encoded = at(runner.publishMicrosHistograms(), t);
            if (encoded != null) {
                ofRunners.add(Histograms.decode(encoded));
            }
        }
        return Histograms.merge(ofRunners);
    }

    private List<@Nullable Double> sums(Function<TimeSeries, List<@Nullable Double>> column) {
        List<@Nullable Double> sums = new ArrayList<>();
        for (int t : times) {
            double sum = 0;
            for (RunnerSeries runner : runners) {
                Double value = at(column.apply(runner.seconds()), t);
                sum += value == null ? 0 : value;
            }
            sums.add(sum);
        }
        return sums;
    }

    private static <T> @Nullable T at(List<@Nullable T> column, int t) {
        return t < column.size() ? column.get(t) : null;
    }

    /** Columns of the runners' own processes are told apart by number where there are several. */
    ResourceSeries resources() {
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
