package io.eventsql.internal.append;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The control law, and what it does to several appenders of one database in virtual time. */
class CommitPaceTest {
    private static final long MS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long S = TimeUnit.SECONDS.toNanos(1);
    private static final long DELAY_MAX = 5 * MS;

    private final CommitPace pace = new CommitPace(DELAY_MAX);
    private long now = -3 * S;

    private void commit(int events, long nanos) {
        now += nanos;
        pace.recordCommit(events, 1, nanos, now);
    }

    private void commits(int count, int events, long nanos) {
        for (int i = 0; i < count; i++) {
            commit(events, nanos);
        }
    }

    private long delay() {
        return pace.remainingNanos(now);
    }

    @Test
    void remainingNanos_constantDuration_isZero() {
        commits(1_000, 10, 3 * MS);
        assertThat(delay()).isZero();
    }

    @Test
    void remainingNanos_durationTripled_isTwiceTheExcess() {
        commits(10, 10, MS);
        commits(100, 10, 3 * MS);
        assertThat(delay()).isBetween(2 * MS - 1_000, 2 * MS);
    }

    /** Each stream of a batch adds to its duration. */
    @Test
    void remainingNanos_manyStreams_isThatOfFew() {
        commits(10, 1, MS);
        for (int i = 0; i < 100; i++) {
            now += 4 * MS;
            pace.recordCommit(40, 40, 4 * MS, now);
        }
        assertThat(delay()).isZero();
        for (int i = 0; i < 100; i++) {
            now += 16 * MS;
            pace.recordCommit(40, 40, 16 * MS, now);
        }
        assertThat(delay()).isBetween(4 * MS - 1_000, 4 * MS);
    }

    @Test
    void remainingNanos_durationWithinTolerance_isZero() {
        commits(10, 10, MS);
        commits(100, 10, 2 * MS);
        assertThat(delay()).isZero();
    }

    @Test
    void remainingNanos_oneSlowCommit_isHardlyDelayed() {
        commits(100, 10, MS);
        commit(10, 20 * MS);
        assertThat(delay()).isZero();
    }

    @Test
    void remainingNanos_afterAnOutage_isZeroWithinFewCommits() {
        commits(10, 10, MS);
        commits(10, 10, S);
        assertThat(delay()).isEqualTo(DELAY_MAX);
        commits(20, 10, MS);
        assertThat(delay()).isZero();
    }

    @Test
    void remainingNanos_laterThanTheLastCommit_decreases() {
        commits(10, 10, MS);
        commits(100, 10, 30 * MS);
        assertThat(delay()).isEqualTo(DELAY_MAX);
        now += 4 * MS;
        assertThat(delay()).isEqualTo(MS);
        now += 2 * MS;
        assertThat(delay()).isNotPositive();
    }

    @Test
    void remainingNanos_largeBatch_isZero() {
        commits(10, 10, MS);
        commits(100, 10, 30 * MS);
        commit(CommitPace.SMALL_BATCH_EVENTS_MAX + 1, 30 * MS);
        assertThat(delay()).isZero();
    }

    @Test
    void remainingNanos_fastestWasLongAgo_isMeasuredByWhatIsFastestNow() {
        commits(10, 10, MS);
        commits(80_000, 10, 8 * MS);
        assertThat(delay()).isZero();
    }

    @Test
    void remainingNanos_maximumIsZero_isZero() {
        CommitPace none = new CommitPace(0);
        for (int i = 0; i < 100; i++) {
            none.recordBegin(100, 1, now);
            none.recordCommit(1, 1, i * MS, now);
        }
        assertThat(none.remainingNanos(now)).isZero();
    }

    /** Begins batches this far apart, for a second. */
    private void begin(int calls, int events, long nanosApart) {
        for (long end = now + S; now < end; now += nanosApart) {
            pace.recordBegin(calls, events, now);
        }
        now -= nanosApart;
    }

    @Test
    void remainingNanos_callsAreRare_isAlmostZero() {
        begin(1, 1, 100 * MS);
        assertThat(delay()).isBetween(0L, MS / 5);
    }

    @Test
    void remainingNanos_thousandCallsPerSecond_isHalfOfTheMaximumFromTheLastBegin() {
        begin(2, 2, 2 * MS);
        assertThat(delay()).isBetween(24 * MS / 10, 26 * MS / 10);
        now += MS;
        assertThat(delay()).isBetween(14 * MS / 10, 16 * MS / 10);
        now += 2 * MS;
        assertThat(delay()).isNotPositive();
    }

    @Test
    void remainingNanos_callsOfAnyRate_isBelowTheMaximum() {
        begin(1_000_000, 100, MS);
        assertThat(delay()).isBetween(DELAY_MAX * 9 / 10, DELAY_MAX);
    }

    @Test
    void remainingNanos_callsComeOftenInALargeBatch_isZero() {
        begin(100, 100, MS);
        pace.recordBegin(100, CommitPace.SMALL_BATCH_EVENTS_MAX + 1, now);
        assertThat(delay()).isZero();
    }

    @Test
    void callsExpected_isTheMaximumOfTheLastSecond() {
        assertThat(pace.callsExpected(now)).isEqualTo(1);
        pace.recordOutstanding(50, now);
        pace.recordOutstanding(3, now);
        assertThat(pace.callsExpected(now)).isEqualTo(50);
        for (int i = 0; i < 100; i++) {
            now += 10 * MS;
            pace.recordOutstanding(4, now);
        }
        assertThat(pace.callsExpected(now)).isEqualTo(4);
        now += 10 * S;
        assertThat(pace.callsExpected(now)).isEqualTo(1);
    }

    @Test
    void simulation_manyAppendersOfABusyDatabase_respondFaster() {
        Simulation without = new Simulation(0, 18, 100, 833).run();
        Simulation with = new Simulation(DELAY_MAX, 18, 100, 833).run();
        assertThat(with.commits).isLessThanOrEqualTo(without.commits);
        assertThat(with.latency(0.5)).isLessThan(without.latency(0.5) * 3 / 4);
        assertThat(with.latency(0.99)).isLessThan(without.latency(0.99) * 4 / 5);
    }

    @Test
    void simulation_idleDatabaseAndRareCalls_commitsAtOnce() {
        Simulation without = new Simulation(0, 1, 20, 20).run();
        Simulation with = new Simulation(DELAY_MAX, 1, 20, 20).run();
        assertThat(with.latency(0.5)).isLessThan(without.latency(0.5) + MS / 10);
        assertThat(with.latency(0.99)).isLessThan(without.latency(0.99) + MS);
    }

    /** An event waits for half of the interval on average. */
    @Test
    void simulation_idleDatabaseAndFrequentCalls_commitsAreShared() {
        Simulation without = new Simulation(0, 1, 1_000, 1_000).run();
        Simulation with = new Simulation(DELAY_MAX, 1, 1_000, 1_000).run();
        assertThat(with.commits).isLessThan(without.commits / 2);
        assertThat(with.latency(0.5)).isLessThan(without.latency(0.5) + 2 * MS);
        assertThat(with.latency(0.99)).isLessThan(without.latency(0.99) + 3 * MS);
    }

    @Test
    void simulation_loadJumpsAndFalls_delayFollowsAndReturnsToZero() {
        Simulation jumping = new Simulation(DELAY_MAX, 18, 100, 833).run();
        assertThat(jumping.meanDelay(2, 4)).isLessThan(MS);
        assertThat(jumping.meanDelay(6, 8)).isGreaterThan(MS);
        assertThat(jumping.meanDelay(10, 12)).isLessThan(MS);
    }

    /**
     * Appenders with a Poisson load each, and a database that processes one commit after the other: 0.3 ms each and 20 µs
     * per event, so that 18 appenders that always commit as soon as they can keep it busy all the time.
     */
    private static final class Simulation {
        private static final long SEED = 42;
        private static final double COMMIT_NANOS = 0.3 * MS;
        private static final double EVENT_NANOS = 0.02 * MS;
        private static final long END = 12 * S;

        private record Step(long at, Appender appender) {}

        /** Takes what has arrived when its step comes; the next step is at its end, or later if it is delayed. */
        private static final class Appender {
            final CommitPace pace;
            final Random random;
            final List<Long> waiting = new ArrayList<>();
            long nextArrival;

            Appender(long delayNanosMax, long seed) {
                pace = new CommitPace(delayNanosMax);
                random = new Random(seed);
            }
        }

        private final PriorityQueue<Step> steps = new PriorityQueue<>(Comparator.comparingLong(Step::at));
        private final List<Long> latencies = new ArrayList<>();
        private final List<long[]> delays = new ArrayList<>();
        private final double rate;
        private final double rateOfJump;
        private long databaseFreeAt;
        long commits;

        /** @param rateOfJump events per second and appender from 4 to 8 s, instead of {@code rate} */
        Simulation(long delayNanosMax, int appenders, double rate, double rateOfJump) {
            this.rate = rate;
            this.rateOfJump = rateOfJump;
            for (int i = 0; i < appenders; i++) {
                steps.add(new Step(i, new Appender(delayNanosMax, SEED + i)));
            }
        }

        private double rateAt(long at) {
            return at >= 4 * S && at < 8 * S ? rateOfJump : rate;
        }

        Simulation run() {
            for (Step step = steps.remove(); step.at < END; step = steps.remove()) {
                step(step.appender, step.at);
            }
            return this;
        }

        private void step(Appender appender, long at) {
            while (appender.nextArrival <= at) {
                appender.waiting.add(appender.nextArrival);
                double gap = -Math.log(1 - appender.random.nextDouble()) / rateAt(appender.nextArrival);
                appender.nextArrival += (long) (gap * S);
            }
            long delay = appender.pace.remainingNanos(at);
            if (appender.waiting.isEmpty()) {
                steps.add(new Step(appender.nextArrival, appender));
            } else if (delay > 0) {
                steps.add(new Step(at + delay, appender));
            } else {
                commit(appender, at);
            }
        }

        private void commit(Appender appender, long at) {
            long work = (long) (COMMIT_NANOS + EVENT_NANOS * appender.waiting.size());
            long end = Math.max(at, databaseFreeAt) + work;
            databaseFreeAt = end;
            commits++;
            appender.pace.recordBegin(appender.waiting.size(), appender.waiting.size(), at);
            appender.waiting.forEach(arrival -> latencies.add(end - arrival));
            appender.pace.recordCommit(appender.waiting.size(), 1, end - at, end);
            appender.waiting.clear();
            delays.add(new long[] {end, Math.max(0, appender.pace.remainingNanos(end))});
            steps.add(new Step(end, appender));
        }

        long latency(double quantile) {
            return latencies.stream()
                    .sorted()
                    .skip((long) (quantile * latencies.size()))
                    .findFirst()
                    .orElseThrow();
        }

        double meanDelay(long fromSecond, long toSecond) {
            return delays.stream()
                    .filter(d -> d[0] >= fromSecond * S && d[0] < toSecond * S)
                    .mapToLong(d -> d[1])
                    .average()
                    .orElse(0);
        }
    }
}
