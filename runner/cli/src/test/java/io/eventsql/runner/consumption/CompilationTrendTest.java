package io.eventsql.runner.consumption;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class CompilationTrendTest {
    private static final long SECOND = 1_000_000_000;

    private final CompilationTrend trend = new CompilationTrend();

    @Test
    void isWarm_onlyAfterAWholeWindowOfLittleCompilation() {
        for (int second = 0; second < 5; second++) {
            trend.add(second * SECOND, 4_000 + second);
            assertThat(trend.isWarm()).as("second " + second).isFalse();
            assertThat(trend.msPerSecond()).isEmpty();
        }
        trend.add(5 * SECOND, 4_005);

        assertThat(trend.msPerSecond()).hasValue(1);
        assertThat(trend.isWarm()).isTrue();
    }

    @Test
    void isWarm_aBurstCounts_untilItHasLeftTheWindow() {
        long total = 0;
        for (int second = 0; second <= 20; second++) {
            total += second == 10 ? 600 : 10;
            trend.add(second * SECOND, total);
            boolean isBurstInWindow = second >= 10 && second < 15;
            assertThat(trend.isWarm()).as("second " + second).isEqualTo(second >= 5 && !isBurstInWindow);
        }
    }

    @Test
    void clear_startsANewWindow() {
        trend.add(0, 0);
        trend.add(6 * SECOND, 0);
        assertThat(trend.isWarm()).isTrue();

        trend.clear();

        assertThat(trend.isWarm()).isFalse();
    }
}
