package io.eventsql.runner.result;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.List;
import org.junit.jupiter.api.Test;

class FigureTest {
    @Test
    void ofRatios_pairedRounds_isTheMedianWithinTheRatios() {
        Figure figure = Figure.ofRatios(List.of(10.0, 10.0, 20.0), List.of(9.0, 10.0, 22.0), "");

        assertThat(figure).isEqualTo(new Figure(1.0, "", 0.9, 1.1, List.of(0.9, 1.0, 1.1)));
        assertThat(figure.text()).isEqualTo("1.000 (0.900 to 1.100)");
    }

    @Test
    void ofRatios_differentNumbersOfRounds_isRejected() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Figure.ofRatios(List.of(1.0), List.of(1.0, 2.0), ""))
                .withMessage("rounds must be paired, but there are 1 and 2");
    }

    @Test
    void ofRounds_oneRound_hasNoInterval() {
        assertThat(Figure.ofRounds(List.of(2.5), "ms").text()).isEqualTo("2.500");
    }

    @Test
    void ratioTo_comparesTheRoundsInPairs() {
        Figure slow = Figure.ofRounds(List.of(1.0, 2.0, 4.0), "events/s");
        Figure fast = Figure.ofRounds(List.of(2.0, 4.0, 8.0), "events/s");

        assertThat(fast.ratioTo(slow).value()).isEqualTo(2);
        assertThat(fast.ratioTo(slow).low()).isEqualTo(2);
    }

    @Test
    void text_countsAndLargeNumbersHaveNoDecimals() {
        assertThat(Figure.of(12_000).text()).isEqualTo("12,000");
        assertThat(Figure.of(123.4).text()).isEqualTo("123");
        assertThat(Figure.of(12.34).text()).isEqualTo("12.340");
    }
}
