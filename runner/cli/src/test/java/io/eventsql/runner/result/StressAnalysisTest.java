package io.eventsql.runner.result;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.RunSeries;
import io.eventsql.runner.measure.TimeSeries;
import io.eventsql.runner.result.RunResult.PhaseMetrics;
import io.eventsql.runner.result.RunResult.StressResult;
import io.eventsql.runner.result.RunResult.StressResult.Resident;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.spec.PhaseRate;
import io.eventsql.runner.spec.PhaseSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class StressAnalysisTest {
    private static final long SECOND = 1_000_000_000;

    private final List<PhaseSpec> specs = List.of(
            new PhaseSpec("maximum", true, null, null, 5, false, 1, 1),
            new PhaseSpec("before", true, PhaseRate.of("0.5x"), null, null, false, 1, 1),
            new PhaseSpec("overload", true, PhaseRate.of("5x"), 10L, null, false, 1, 6),
            new PhaseSpec("recovery", true, PhaseRate.of("0.5x"), null, null, false, 1, 7));

    @Test
    void of_overload_measuresAcceptedRateAndRecovery() {
        // Of the phase before, p50 is 2 ms and p99 20 ms. The recovery's second second is as quick, its third one is
        // not.
        RunSeries series = new RunSeries(0);
        series.start(0);
        series.addPhase("maximum", 0, SECOND);
        series.addPhase("before", SECOND, 2 * SECOND);
        series.addPhase("overload", 2 * SECOND, 8 * SECOND);
        series.addPhase("recovery", 8 * SECOND, 15 * SECOND);
        List<Integer> slow = List.of(2, 3, 4, 5, 6, 7, 8, 10);
        for (int second = 0; second < 15; second++) {
            series.recordAcknowledged(second * SECOND, slow.contains(second) ? 500_000 : 3_000, 10);
        }
        // A single slow answer changes the p99 but not the median.
        series.recordAcknowledged(11 * SECOND, 30_000, 1);
        TimeSeries seconds = series.finish(15 * SECOND);
        List<Double> memory = new ArrayList<>(List.of(1.0, 1.0));
        memory.addAll(List.of(100.0, 102.0, 101.0, 101.0, 101.0, 201.0));

        StressResult stress = StressAnalysis.of(
                specs,
                List.of(
                        figures("maximum", 1_000, 0, 60),
                        figures("before", 500, 0, 2),
                        figures("overload", 950, 4_050, 500),
                        figures("recovery", 500, 0, 3)),
                seconds,
                new ResourceSeries(1, seconds.t(), Map.of("runner.rss_mb", memory, "runner.cpu_cores", memory)));

        assertThat(stress)
                .isEqualTo(new StressResult("overload", 0.95, 0.81, Map.of("runner", new Resident(101.0, 121.2)), 4));
    }

    @Test
    void of_noOverload_isNull() {
        TimeSeries nothing = new RunSeries(0).finish(0);

        assertThat(StressAnalysis.of(
                        specs.subList(0, 1), List.of(figures("maximum", 1_000, 0, 2)), nothing, ResourceSeries.empty()))
                .isNull();
    }

    private static PhaseMetrics figures(String name, long published, long missed, double p50) {
        Percentiles ms = new Percentiles(p50, 1_001, 10 * p50, 1_003, 1_004, 1_000);
        return new PhaseMetrics(
                name, true, 0, 1, 0, published, published, 0, missed, List.of(), published, 0, 0, ms, ms, null, null);
    }
}
