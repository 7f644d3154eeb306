package io.eventsql.internal.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class FetchPaceTest {
    private static final long MS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long FETCH_NANOS = MS / 5;

    private long now;
    private final FetchPace pace = new FetchPace();
    private double unfetched;

    /** Fetches as often as allowed while events are published at a rate; returns the number of fetches. */
    private int fetchFor(long millis, double eventsPerSecond) {
        int fetches = 0;
        for (long end = now + millis * MS; now < end; fetches++) {
            long wait = pace.probeNanos();
            now += wait;
            unfetched += eventsPerSecond * wait / TimeUnit.SECONDS.toNanos(1);
            int events = (int) unfetched;
            unfetched -= events;
            pace.record(now, now + FETCH_NANOS, events);
        }
        return fetches;
    }

    @Test
    void interval_afterAPause_isThatOfAnIdleConsumer() {
        fetchFor(1_000, 10_000);
        now += 10_000 * MS;
        pace.record(now, now + FETCH_NANOS, 1);
        assertThat(pace.intervalNanos()).isLessThanOrEqualTo(MS / 2);
    }

    @ParameterizedTest
    @CsvSource({"100, 0.4", "1000, 2.5", "3000, 3.7", "10000, 4.5", "1000000, 5"})
    void interval_steadyRate_growsWithItAndStaysBounded(double eventsPerSecond, double intervalMs) {
        fetchFor(1_000, eventsPerSecond);
        assertThat(pace.intervalNanos() / (double) MS).isCloseTo(intervalMs, within(0.4));
        assertThat(pace.intervalNanos()).isLessThanOrEqualTo(FetchPace.RATE_INTERVAL_NANOS_MAX);
    }

    @Test
    void interval_rateJumps_followsInAFewFetchesAndDoesNotOscillate() {
        fetchFor(1_000, 50);
        fetchFor(150, 20_000);
        long after = pace.intervalNanos();
        assertThat(after).isGreaterThan(4 * MS);
        for (int i = 0; i < 100; i++) {
            fetchFor(10, 20_000);
            assertThat(pace.intervalNanos()).isCloseTo(after, within(MS / 2));
        }
        fetchFor(300, 0);
        assertThat(pace.intervalNanos()).isLessThan(MS);
    }

    @Test
    void interval_databaseAnswersSlowly_isTwiceTheDurationAtMost20Ms() {
        pace.record(now += MS, now + 4 * MS, 1);
        assertThat(pace.intervalNanos()).isEqualTo(8 * MS);
        pace.record(now += MS, now + 500 * MS, 1);
        assertThat(pace.intervalNanos()).isEqualTo(20 * MS);
        pace.record(now += MS, now + FETCH_NANOS, 0);
        assertThat(pace.intervalNanos()).isLessThan(MS);
    }

    @Test
    void interval_oneSlowFetch_isForgottenWithTheNextFastOneWhateverItReturns() {
        fetchFor(1_000, 5_000);
        long before = pace.intervalNanos();
        pace.record(now += 5 * MS, now + 10 * MS, 1);
        assertThat(pace.intervalNanos()).isEqualTo(20 * MS);
        pace.record(now += 20 * MS, now + MS, 100);
        assertThat(pace.intervalNanos()).isCloseTo(before, within(MS));
    }

    @Test
    void probe_nothingFound_pausesDoubleUpTo8Ms() {
        now += 1_000 * MS;
        pace.record(now, now + FETCH_NANOS, 1);
        assertThat(pace.probeNanos()).isEqualTo(MS);
        for (int ms : new int[] {2, 4, 8, 8}) {
            now += pace.probeNanos();
            pace.record(now, now + FETCH_NANOS, 0);
            assertThat(pace.probeNanos()).isEqualTo(ms * MS);
        }
        now += pace.probeNanos();
        pace.record(now, now + FETCH_NANOS, 1);
        assertThat(pace.probeNanos()).isEqualTo(MS);
    }
}
