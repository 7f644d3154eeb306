package io.eventsql.internal.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.ToLongFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class FetchPaceTest {
    private static final long MS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long FETCH_NANOS = MS / 5;

    private static final long SEED = 42;

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
            pace.record(now, now + FETCH_NANOS, events, 1);
        }
        return fetches;
    }

    @Test
    void interval_afterAPause_isThatOfAnIdleConsumer() {
        fetchFor(1_000, 10_000);
        now += 10_000 * MS;
        pace.record(now, now + FETCH_NANOS, 1, 1);
        assertThat(pace.intervalNanos()).isLessThanOrEqualTo(MS / 2);
    }

    @ParameterizedTest
    @CsvSource({"100, 0.4", "1000, 2.4", "3000, 3.6", "10000, 4.4", "1000000, 4.8"})
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
        assertThat(after).isGreaterThan(3 * MS);
        for (int i = 0; i < 100; i++) {
            fetchFor(10, 20_000);
            assertThat(pace.intervalNanos()).isCloseTo(after, within(MS / 2));
        }
        fetchFor(300, 0);
        assertThat(pace.intervalNanos()).isLessThan(MS);
    }

    private void fetchesThatTake(int count, long nanos, int events) {
        for (int i = 0; i < count; i++) {
            now += 20 * MS;
            pace.record(now, now + nanos, events, 1);
        }
    }

    @Test
    void interval_databaseAnswersSlowly_isTwiceTheDurationAtMost20Ms() {
        fetchesThatTake(50, 4 * MS, 1);
        assertThat(pace.intervalNanos()).isCloseTo(8 * MS, within(MS / 10));
        fetchesThatTake(50, 500 * MS, 1);
        assertThat(pace.intervalNanos()).isCloseTo(20 * MS, within(MS / 10));
        fetchesThatTake(50, FETCH_NANOS, 0);
        assertThat(pace.intervalNanos()).isLessThan(MS);
    }

    @Test
    void interval_oneSlowFetch_isHardlyLonger() {
        fetchFor(1_000, 1_000);
        long before = pace.intervalNanos();
        now += 2 * MS;
        pace.record(now, now + 8 * MS, 2, 1);
        assertThat(pace.intervalNanos()).isCloseTo(before, within(MS / 2));
    }

    /** The longer interval itself would keep each fetch large, and so the interval long. */
    @Test
    void interval_slowFetchesEnd_shrinksAlsoIfAllReturnManyEvents() {
        fetchesThatTake(50, 10 * MS, 1);
        assertThat(pace.intervalNanos()).isGreaterThan(19 * MS);
        fetchesThatTake(50, MS, 100);
        assertThat(pace.intervalNanos()).isLessThan(5 * MS);
    }

    /** The longer the interval, the more streams have an event, and the longer a fetch takes. */
    @Test
    void interval_slowFetchesEnd_shrinksAlsoIfAllReturnManyStreams() {
        fetchesThatTake(50, 10 * MS, 1);
        assertThat(pace.intervalNanos()).isGreaterThan(19 * MS);
        double eventsPerMs = 5;
        for (int i = 0; i < 50; i++) {
            long interval = pace.intervalNanos();
            now += interval;
            int streams = (int) (eventsPerMs * interval / MS);
            pace.record(now, now + MS / 2 + streams * MS / 10, streams, streams);
        }
        assertThat(pace.intervalNanos()).isLessThan(5 * MS);
    }

    /** A consumer of commits, in virtual time. */
    private final class Simulation {
        private final Random random = new Random(SEED);
        private long commits;
        private long fetches;
        private long waitedNanos;
        private long fetchedCommits;

        /** Fetches for ten seconds; commits of two or three events become visible as far apart as {@code gap} says. */
        Simulation run(ToLongFunction<Random> gap) {
            long end = now + 10_000 * MS;
            long nextCommit = now;
            List<Long> visible = new ArrayList<>();
            while (now < end) {
                now += pace.probeNanos();
                for (; nextCommit <= now; nextCommit += gap.applyAsLong(random)) {
                    visible.add(nextCommit);
                    commits++;
                }
                fetches++;
                fetchedCommits += visible.size();
                int events = 0;
                for (long at : visible) {
                    waitedNanos += now - at;
                    events += 2 + random.nextInt(2);
                }
                pace.record(now, now + FETCH_NANOS, events, 1);
                visible.clear();
            }
            return this;
        }

        double meanWaitMs() {
            return waitedNanos / (double) fetchedCommits / MS;
        }
    }

    /** By chance each event would wait for a whole interval of 2 ms, and in the mean for half of it. */
    @Test
    void fetches_commitsAreRegular_followThem() {
        Simulation regular = new Simulation().run(random -> Math.round(2.5 * MS + random.nextGaussian() * MS / 20));
        assertThat(regular.meanWaitMs()).isLessThan(0.5);
        assertThat(regular.fetches).isLessThan(regular.commits * 6 / 5);
    }

    @Test
    void fetches_commitsAreIrregular_areHardlyMore() {
        Simulation irregular =
                new Simulation().run(random -> Math.round(-Math.log(1 - random.nextDouble()) * 2.5 * MS));
        assertThat(irregular.meanWaitMs()).isBetween(0.5, 2.0);
        assertThat(irregular.fetches).isLessThan(irregular.commits * 6 / 5);
    }

    @Test
    void interval_emptyAfterSomeWithEvents_isAsShortAsTheDatabaseAllows() {
        fetchFor(1_000, 1_000);
        now += 2 * MS;
        pace.record(now, now + FETCH_NANOS, 0, 1);
        assertThat(pace.intervalNanos()).isLessThan(MS / 2);
        assertThat(pace.probeNanos()).isEqualTo(pace.intervalNanos());
        now += MS / 2;
        pace.record(now, now + FETCH_NANOS, 0, 1);
        long usual = pace.intervalNanos();
        assertThat(usual).isGreaterThan(2 * MS);
        assertThat(pace.probeNanos()).isEqualTo(usual);
        now += usual;
        pace.record(now, now + FETCH_NANOS, 0, 1);
        assertThat(pace.probeNanos()).isEqualTo(2 * pace.intervalNanos());
    }

    @Test
    void probe_nothingFound_pausesDoubleUpTo8Ms() {
        now += 1_000 * MS;
        pace.record(now, now + FETCH_NANOS, 1, 1);
        assertThat(pace.probeNanos()).isEqualTo(MS);
        for (int ms : new int[] {2, 4, 8, 8}) {
            now += pace.probeNanos();
            pace.record(now, now + FETCH_NANOS, 0, 1);
            assertThat(pace.probeNanos()).isEqualTo(ms * MS);
        }
        now += pace.probeNanos();
        pace.record(now, now + FETCH_NANOS, 1, 1);
        assertThat(pace.probeNanos()).isEqualTo(MS);
    }
}
