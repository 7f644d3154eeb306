package io.eventsql.internal.pace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RateIntervalTest {
    private static final long MS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long MAX = 5 * MS;

    private final RateInterval interval = new RateInterval(MAX);
    private long now;

    private void record(int events, long nanosApart, int times) {
        for (int i = 0; i < times; i++) {
            now += nanosApart;
            interval.record(events, now);
        }
    }

    @Test
    void nanos_nothingRecorded_isZero() {
        assertThat(interval.nanos()).isZero();
    }

    @ParameterizedTest
    @CsvSource({"1, 10, 0.45", "1, 1, 2.5", "5, 5, 2.5", "10, 1, 4.55", "1000, 1, 5"})
    void nanos_steadyRate_dependsOnItAlone(int events, long millisApart, double expectedMs) {
        record(events, millisApart * MS, 1_000);
        assertThat(interval.nanos() / (double) MS).isCloseTo(expectedMs, within(0.1));
        assertThat(interval.nanos()).isLessThanOrEqualTo(MAX);
    }

    @Test
    void nanos_oneEventAfterAPause_isAlmostZero() {
        record(1, MS, 1_000);
        record(1, 10_000 * MS, 1);
        assertThat(interval.nanos()).isLessThan(MS / 20);
    }

    @Test
    void nanos_rateJumps_followsWithin150Ms() {
        record(1, 20 * MS, 50);
        record(20, MS, 150);
        assertThat(interval.nanos()).isGreaterThan(MAX * 9 / 10);
    }

    @Test
    void nanos_maximumIsZero_isZero() {
        RateInterval none = new RateInterval(0);
        none.record(1_000_000, now);
        assertThat(none.nanos()).isZero();
    }
}
