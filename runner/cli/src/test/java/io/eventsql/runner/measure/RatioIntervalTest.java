package io.eventsql.runner.measure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.List;
import org.junit.jupiter.api.Test;

class RatioIntervalTest {
    @Test
    void of_pairedRounds_isWithinTheRatios() {
        RatioInterval interval = RatioInterval.of(List.of(10.0, 10.0, 20.0), List.of(9.0, 10.0, 22.0));

        assertThat(interval.median()).isEqualTo(1.0);
        assertThat(interval.low()).isEqualTo(0.9);
        assertThat(interval.high()).isEqualTo(1.1);
    }

    @Test
    void of_differentNumbersOfRounds_isRejected() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RatioInterval.of(List.of(1.0), List.of(1.0, 2.0)))
                .withMessage("rounds must be paired, but there are 1 and 2");
    }
}
