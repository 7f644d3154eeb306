package io.eventsql.runner;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.runner.spec.RunSpec;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class RateSearchTest {
    private final List<Long> tried = new ArrayList<>();

    @Test
    void best_isJustBelowTheLimit() {
        assertThat(best(1_000, 200_000, 17_500)).isBetween(16_650L, 17_500L);
        assertThat(tried)
                .startsWith(1_000L, 2_000L, 4_000L, 8_000L, 16_000L, 32_000L)
                .hasSizeLessThan(13);
    }

    @Test
    void best_everythingHolds_isTheHighest() {
        assertThat(best(1_000, 3_000, 1_000_000)).isEqualTo(3_000);
        assertThat(tried).containsExactly(1_000L, 2_000L, 3_000L);
    }

    @Test
    void best_nothingHolds_isEmpty() {
        assertThat(best(1_000, 3_000, 10)).isZero();
        assertThat(tried).containsExactly(1_000L);
    }

    private long best(long from, long to, long limit) {
        RunSpec.SearchSpec spec = new RunSpec.SearchSpec(RunSpec.SearchSpec.Latency.PUBLISH, 99, 15, from, to, 0.05);
        return new RateSearch(spec)
                .findBest(rate -> {
                    tried.add(rate);
                    return rate <= limit;
                })
                .orElse(0);
    }
}
