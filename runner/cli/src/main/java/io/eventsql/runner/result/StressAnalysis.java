package io.eventsql.runner.result;

import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.TimeSeries;
import io.eventsql.runner.result.RunResult.PhaseMetrics;
import io.eventsql.runner.result.RunResult.StressResult;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.spec.PhaseRate;
import io.eventsql.runner.spec.PhaseSpec;
import java.math.BigDecimal;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Analyzes how a system behaved under overload from the phases and the time series of a run. */
public final class StressAnalysis {
    private static final String RESIDENT = ".rss_mb";
    /** The seconds over which memory is averaged. */
    private static final int MEMORY_SECONDS = 5;
    /**
     * A second counts as recovered if its p99 does not exceed the p99 before the overload, and its median at most this
     * multiple.
     */
    private static final double MEDIAN_RECOVERED = 2;
    /** The required number of consecutive recovered seconds, because a single one may be chance. */
    private static final int SECONDS_RECOVERED = 3;

    private StressAnalysis() {}

    /** Analyzes the overload phase; {@code null} if no phase is a multiple above 1. */
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

    /** Returns the measured phase right before an overload. It exists because an overload is a multiple of a phase. */
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

    /** Returns the number of seconds until the first of several consecutive recovered seconds. */
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
