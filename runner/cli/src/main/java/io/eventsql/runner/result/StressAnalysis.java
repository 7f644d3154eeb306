package io.eventsql.runner.result;

import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.result.RunResult.PhaseMetrics;
import io.eventsql.runner.result.RunResult.StressResult;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.series.TimeSeries;
import io.eventsql.runner.spec.PhaseRate;
import io.eventsql.runner.spec.PhaseSpec;
import java.math.BigDecimal;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Reads from the phases and seconds of a run how it stood an overload. */
public final class StressAnalysis {
    private static final String RESIDENT = ".rss_mb";
    /** Memory is the mean of so many seconds. */
    private static final int MEMORY_SECONDS = 5;
    /** A second is as quick as before if its p99 is at most that of before, and its median at most so many times. */
    private static final double MEDIAN_RECOVERED = 2;
    /** So many seconds have to be as quick in a row: one alone may be luck. */
    private static final int SECONDS_RECOVERED = 3;

    private StressAnalysis() {}

    /** {@code null} where no phase that was played is a multiple above 1. */
    public static @Nullable StressResult of(
            List<PhaseSpec> specs, List<PhaseMetrics> played, TimeSeries series, ResourceSeries resources) {
        PhaseMetrics reference = null;
        for (int i = 0; i < played.size(); i++) {
            PhaseSpec spec = specs.get(i);
            if (spec.measured() && spec.callers() != null) {
                reference = played.get(i);
            }
            PhaseRate rate = spec.rate();
            if (reference != null
                    && rate != null
                    && rate.isMultiple()
                    && rate.value().compareTo(BigDecimal.ONE) > 0) {
                return of(reference, before(played, i), played.get(i), series, resources);
            }
        }
        return null;
    }

    /** The measured phase right before an overload; there is one, because an overload is a multiple of a phase. */
    private static PhaseMetrics before(List<PhaseMetrics> played, int overload) {
        return played.subList(0, overload).stream()
                .filter(PhaseMetrics::measured)
                .reduce((earlier, later) -> later)
                .orElseThrow();
    }

    private static StressResult of(
            PhaseMetrics reference,
            PhaseMetrics before,
            PhaseMetrics overload,
            TimeSeries series,
            ResourceSeries resources) {
        int first = series.phase().indexOf(overload.name());
        int behind = series.phase().lastIndexOf(overload.name()) + 1;
        Map<String, StressResult.Resident> resident = new LinkedHashMap<>();
        resources.columns().keySet().stream()
                .filter(column -> column.endsWith(RESIDENT))
                .forEach(column -> resident.put(
                        column.substring(0, column.length() - RESIDENT.length()),
                        new StressResult.Resident(
                                resources.mean(column, first, first + MEMORY_SECONDS),
                                resources.mean(column, behind - MEMORY_SECONDS, behind))));
        long offered = overload.eventsSent() + overload.eventsMissed();
        return new StressResult(
                overload.name(),
                reference.publishRate() == 0 ? 0 : overload.publishRate() / reference.publishRate(),
                offered == 0 ? 0 : (double) overload.eventsMissed() / offered,
                resident,
                recoverySeconds(series, behind, before.publishLatencyMs()));
    }

    /** The seconds before the first of several that are as quick as before. */
    private static @Nullable Integer recoverySeconds(TimeSeries series, int from, Percentiles before) {
        int quick = 0;
        for (int second = from; second < series.t().size(); second++) {
            Double p50 = series.publishP50Ms().get(second);
            Double p99 = series.publishP99Ms().get(second);
            boolean asBefore =
                    p50 != null && p99 != null && p50 <= MEDIAN_RECOVERED * before.p50() && p99 <= before.p99();
            quick = asBefore ? quick + 1 : 0;
            if (quick == SECONDS_RECOVERED) {
                return second + 1 - SECONDS_RECOVERED - from;
            }
        }
        return null;
    }
}
