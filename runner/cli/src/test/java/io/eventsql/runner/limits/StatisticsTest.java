package io.eventsql.runner.limits;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import io.eventsql.runner.measure.Statistics;
import io.eventsql.runner.result.Figure;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

class StatisticsTest {

    @Test
    void median_oddCount_isTheOneInTheMiddle() {
        assertThat(Statistics.median(List.of(9.0, 1.0, 5.0))).isEqualTo(5.0);
    }

    @Test
    void median_evenCount_isTheMeanOfTheTwoInTheMiddle() {
        assertThat(Statistics.median(List.of(9.0, 1.0, 4.0, 6.0))).isEqualTo(5.0);
    }

    @Test
    void median_nothing_isRejected() {
        assertThatIllegalArgumentException().isThrownBy(() -> Statistics.median(List.of()));
    }

    @Test
    void ratio_dividesTheValues() {
        assertThat(Statistics.ratio(1, 4)).isEqualTo(0.25);
        assertThat(Statistics.ratio(1, 0)).isZero();
    }

    @Test
    void rate_isTheMedianOfTheRounds() {
        MeasuredRate rate = MeasuredRate.of(
                "any",
                List.of(
                        new MeasuredInterval(3_000, 30, 1_000_000_000),
                        new MeasuredInterval(1_000, 20, 500_000_000),
                        new MeasuredInterval(2_000, 10, 2_000_000_000)));

        assertThat(rate.perSecond())
                .isEqualTo(new Figure(2_000.0, "events/s", 1_000.0, 3_000.0, List.of(3_000.0, 2_000.0, 1_000.0)));
        assertThat(rate.eventsPerCall()).isEqualTo(100.0);
    }

    @Test
    void rate_ofAKnownRate_isThatRate() {
        MeasuredRate rate =
                MeasuredRate.of("any", List.of(MeasuredInterval.ofRate(123_456, 5_000, Duration.ofMillis(100))));

        assertThat(rate.perSecond().value()).isCloseTo(123_456, within(0.01));
        assertThat(rate.eventsPerCall()).isEqualTo(5_000);
    }

    @Test
    void rate_nothingMeasured_isZero() {
        assertThat(MeasuredRate.of("any", List.of(new MeasuredInterval(0, 0, 0))))
                .satisfies(rate -> {
                    assertThat(rate.perSecond().value()).isZero();
                    assertThat(rate.eventsPerCall()).isZero();
                });
    }

    @Test
    void lastToSecond_comparesQuarters() {
        assertThat(CompactionBenchmark.lastToSecond(List.of(1.0, 1.0, 2.0, 2.0, 9.0, 9.0, 1.0, 3.0)))
                .isEqualTo(1);
        assertThat(CompactionBenchmark.lastToSecond(List.of(1.0, 2.0, 3.0, 1.0)))
                .isEqualTo(0.5);
    }
}
