package io.eventsql.runner.limits;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.eventsql.runner.measure.Statistics;
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

        assertThat(rate.roundsEventsPerSecond()).containsExactly(3_000.0, 2_000.0, 1_000.0);
        assertThat(rate.eventsPerSecond()).isEqualTo(2_000.0);
        assertThat(rate.eventsPerCall()).isEqualTo(100.0);
    }

    @Test
    void rate_nothingMeasured_isZero() {
        assertThat(MeasuredRate.of("any", List.of(new MeasuredInterval(0, 0, 0))))
                .satisfies(rate -> {
                    assertThat(rate.eventsPerSecond()).isZero();
                    assertThat(rate.eventsPerCall()).isZero();
                });
    }

    @Test
    void slowestLargePage_smallPagesDoNotCount_fastestIsOfAll() {
        ReadResult.PageSizeRates sizes = ReadResult.PageSizeRates.of(
                List.of(), List.of(page(10, 1_000), page(100, 50_000), page(1_000, 20_000), page(5_000, 40_000)));

        assertThat(sizes.slowestLargePageEvents()).isEqualTo(1_000);
        assertThat(sizes.slowestLargeToFastest()).isEqualTo(0.4);
    }

    @Test
    void appendResult_relatesTheLibraryToEachCopy() {
        AppendResult result = AppendResult.of(
                230,
                5_000,
                List.of(rate("copy 1", 200_000), rate("copy 2", 400_000)),
                List.of(rate("a", 100_000)),
                List.of(rate("bare 1", 125_000), rate("bare 2", 50_000)));

        assertThat(result.library())
                .singleElement()
                .extracting(AppendResult.LibraryRate::ratioToCopy)
                .isEqualTo(List.of(0.5, 0.25));
        assertThat(result.library().getFirst().toLastCopy().median()).isEqualTo(0.25);
        assertThat(result.singleToGroupCommit().median()).isEqualTo(0.8);
    }

    private static ReadResult.PageSizeRate page(int events, double perSecond) {
        return new ReadResult.PageSizeRate(events, rate("pages of " + events, perSecond));
    }

    private static MeasuredRate rate(String name, double perSecond) {
        return new MeasuredRate(name, perSecond, List.of(perSecond), 1);
    }
}
