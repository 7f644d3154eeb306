package io.eventsql.runner.result;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.result.RunResult.PhaseFigures;
import io.eventsql.runner.result.RunResult.StressFigures;
import io.eventsql.runner.result.RunResult.StressFigures.Resident;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.series.RunSeries;
import io.eventsql.runner.series.TimeSeries;
import io.eventsql.runner.spec.PhaseRate;
import io.eventsql.runner.spec.PhaseSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class StressReadingTest {
    private static final long SECOND = 1_000_000_000;

    private final List<PhaseSpec> specs = List.of(
            new PhaseSpec("maximum", true, null, null, 5, false, 1, 1),
            new PhaseSpec("before", true, PhaseRate.of("0.5x"), null, null, false, 1, 1),
            new PhaseSpec("overload", true, PhaseRate.of("5x"), 10L, null, false, 1, 6),
            new PhaseSpec("recovery", true, PhaseRate.of("0.5x"), null, null, false, 1, 4));

    @Test
    void of_overload_tellsWhatWasAcceptedAndWhenItRecovered() {
        // p50 of right before is 2 ms: 20 ms is the limit, which the second second of the recovery keeps.
        RunSeries series = new RunSeries(0);
        series.begin(0);
        series.phase("maximum", 0, SECOND);
        series.phase("before", SECOND, 2 * SECOND);
        series.phase("overload", 2 * SECOND, 8 * SECOND);
        series.phase("recovery", 8 * SECOND, 12 * SECOND);
        for (int second = 0; second < 12; second++) {
            long latencyMicros = second < 2 ? 2_000 : second < 9 ? 500_000 : 3_000;
            series.acknowledged(second * SECOND, latencyMicros, 10);
        }
        TimeSeries seconds = series.table(12 * SECOND);
        List<Double> memory = new ArrayList<>(List.of(1.0, 1.0));
        memory.addAll(List.of(100.0, 102.0, 101.0, 101.0, 101.0, 201.0));

        StressFigures stress = StressReading.of(
                specs,
                List.of(
                        figures("maximum", 1_000, 0, 60),
                        figures("before", 500, 0, 2),
                        figures("overload", 950, 4_050, 500),
                        figures("recovery", 500, 0, 3)),
                seconds,
                new ResourceSeries(1, seconds.t(), Map.of("runner.rss_mb", memory, "runner.cpu_cores", memory)));

        assertThat(stress)
                .isEqualTo(new StressFigures("overload", 0.95, 0.81, Map.of("runner", new Resident(101.0, 121.2)), 1));
    }

    @Test
    void of_noOverload_isNothing() {
        TimeSeries nothing = new RunSeries(0).table(0);

        assertThat(StressReading.of(
                        specs.subList(0, 1),
                        List.of(figures("maximum", 1_000, 0, 2)),
                        nothing,
                        ResourceSeries.nothing()))
                .isNull();
    }

    private static PhaseFigures figures(String name, long published, long missed, double p50) {
        Percentiles ms = new Percentiles(p50, 1_001, 1_002, 1_003, 1_004, 1_000);
        return new PhaseFigures(
                name, true, 0, 1, 0, published, published, 0, missed, List.of(), published, 0, 0, ms, ms, null, null);
    }
}
