package io.eventsql.internal.thread;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class FailureSeriesTest {
    private final FailureSeries failures = new FailureSeries();

    @Test
    void add_sameReason_isNewOnlyOnceInASeries() {
        assertThat(failures.add("timed out after 1003 ms").isNew()).isTrue();
        assertThat(failures.add("timed out after 998 ms").isNew()).isFalse();
        assertThat(failures.add("permission denied").isNew()).isTrue();
        assertThat(failures.add("timed out after 998 ms").isNew()).isFalse();
        assertThat(failures.end()).isEqualTo(4);
        assertThat(failures.end()).isZero();
        assertThat(failures.add("permission denied").isNew()).isTrue();
    }

    @Test
    void add_manyReasons_staysBounded() {
        int logged = 0;
        for (char reason = 'a'; reason <= 'z'; reason++) {
            logged += failures.add("reason " + reason).isNew() ? 1 : 0;
        }
        assertThat(logged).isEqualTo(10);
    }

    @Test
    void add_again_pausesGrowUpToASecond() {
        long first = failures.add("x").retryMs();
        assertThat(first).isBetween(10L, 20L);
        long last = first;
        for (int i = 0; i < 50; i++) {
            last = failures.add("x").retryMs();
        }
        assertThat(last).isBetween(500L, 1_000L);
        failures.end();
        assertThat(failures.add("x").retryMs()).isBetween(10L, 20L);
    }
}
