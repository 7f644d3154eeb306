package io.eventsql.runner.result;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.runner.measure.ErrorCount;
import io.eventsql.runner.measure.Histograms;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.spec.RunSettings;
import java.util.List;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

class RunnerTextTest {

    @Test
    void published_withARate_hasTheStableFormat() {
        assertThat(text(5_000, 3).published(measurement(300_000, 63_436_000, List.of())))
                .startsWith(
                        "Publishing 300000 events with 5000 per second rate took: PT1M3.436S, which means 4729 per second"
                                + " rate",
                        "3 runner instances were running in parallel, so the real rate was 14187 per second for 900000"
                                + " events");
    }

    @Test
    void published_asFastAsPossible_saysSo() {
        assertThat(text(0, 1).published(measurement(50_000, 1_000_000, List.of())))
                .first()
                .isEqualTo("Publishing 50000 events as fast as possible took: PT1S, which means 50000 per second rate");
    }

    @Test
    void published_oneRunner_hasNoLineAboutOthers() {
        assertThat(text(5_000, 1).published(measurement(10, 1_000, List.of())))
                .noneMatch(line -> line.contains("in parallel"));
    }

    @Test
    void published_latency_isInMilliseconds() {
        assertThat(text(5_000, 1).published(measurement(10, 1_000, List.of())))
                .contains(
                        "Publish latency in ms: p50 2.000, p99 2.000, p99.9 2.000, max 2.000",
                        "Schedule delay in ms: p50 0.000, p99 0.000, p99.9 0.000, max 0.000");
    }

    @Test
    void published_errors_areShown() {
        assertThat(text(5_000, 1)
                        .published(measurement(10, 1_000, List.of(new ErrorCount("x.Failure", 7, "the disk is full")))))
                .last()
                .isEqualTo("7 events failed with x.Failure: the disk is full");
    }

    @Test
    void published_nothing_saysSo() {
        assertThat(text(5_000, 1).published(PhaseMeasurement.empty())).first().isEqualTo("Nothing was published");
    }

    @Test
    void consumed_hasTheStableFormat() {
        assertThat(text(5_000, 3).consumed(300_000, 63_551_000))
                .containsExactly(
                        "Consuming 300000 events with 5000 per second rate took: PT1M3.551S, which means 4721 per second"
                                + " rate",
                        "3 runner instances were running in parallel, so the real rate was 14163 per second for 900000"
                                + " events");
    }

    private static RunnerText text(long rate, int runners) {
        return new RunnerText(new RunSettings(
                new RunSettings.Identity("ab12cd34", 0, runners),
                new RunSettings.Stream("account_created", 10, "app", 120),
                new RunSettings.Load(rate, 300_000, 1, 50, false, 5, 0),
                new RunSettings.Events(null, false, 1_000)));
    }

    private static PhaseMeasurement measurement(long events, long micros, List<ErrorCount> errors) {
        Histogram latency = Histograms.create();
        latency.recordValueWithCount(2_000, events);
        return new PhaseMeasurement(
                events, events, errors, 1_000_000L, 1_000_000L + micros, latency, latency, Histograms.create());
    }
}
