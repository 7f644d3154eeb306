package io.eventsql.internal.consume;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.ConsumerSpec;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** The seed of the random part is printed on failure and can be set with {@code -Deventsql.test.seed}. */
class FetchBudgetTest {
    private static final long SEED = Long.getLong("eventsql.test.seed", System.nanoTime());
    private static final long BYTES = 1 << 20;
    private static final int PARTITIONS = 16;
    private static final long SHARE = BYTES / 4 / PARTITIONS;

    private final FetchBudget budget =
            new FetchBudget(ConsumerSpec.of("orders", "billing").withMaxFetchedBytes(BYTES));

    FetchBudgetTest() {
        for (int i = 0; i < PARTITIONS; i++) {
            budget.addPartition();
        }
    }

    @Test
    void reserve_othersHaveTakenAllTheyCan_stillGrantsTheShare() {
        while (budget.reserve(BYTES / 8, BYTES / 8) > 0) {
            // stuck partitions fetch as much as they get
        }
        assertThat(budget.reserve(BYTES / 8, SHARE))
                .as("has more than half its share")
                .isZero();
        assertThat(budget.reserve(BYTES / 8, 0)).isEqualTo(SHARE);
        assertThat(budget.reserve(10, 0)).isEqualTo(10);
    }

    @Test
    void replace_roomAfterAFetchHadToWait_isSignalledOnce() throws InterruptedException {
        FetchSchedule schedule = new FetchSchedule(java.time.Duration.ofMinutes(1));
        budget.add(schedule);
        long reserved = budget.reserve(BYTES * 3 / 4, 0);
        assertThat(budget.reserve(1_000, SHARE)).isZero();

        budget.replace(reserved, 10);

        schedule.await(Long.MAX_VALUE); // hangs without a signal
        assertThat(budget.reserve(1_000, SHARE)).isEqualTo(1_000);
    }

    @Test
    void reserve_atRandom_neverExceedsTheBudgetAndNeverStarvesAPartition() {
        Random random = new Random(SEED);
        long[] held = new long[PARTITIONS];
        for (int round = 0; round < 200_000; round++) {
            int partition = random.nextInt(PARTITIONS);
            if (random.nextInt(3) > 0) {
                long wanted = 1 + random.nextInt((int) BYTES / 4);
                long granted = budget.reserve(wanted, held[partition]);
                assertThat(granted).isLessThanOrEqualTo(wanted);
                assertThat(granted > 0 || held[partition] > SHARE / 2)
                        .as(
                                "seed %d, round %d: a partition with %d bytes gets %d",
                                SEED, round, held[partition], granted)
                        .isTrue();
                long actual = granted == 0 ? 0 : random.nextLong(granted + 1);
                budget.replace(granted, actual);
                held[partition] += actual;
            } else {
                long released = held[partition] == 0 ? 0 : random.nextLong(held[partition] + 1);
                budget.release(released);
                held[partition] -= released;
            }
            assertThat(budget.usedBytes())
                    .as("seed %d, round %d", SEED, round)
                    .isEqualTo(java.util.Arrays.stream(held).sum())
                    .isLessThanOrEqualTo(BYTES);
        }
    }
}
