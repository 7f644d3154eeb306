package io.eventsql.app.benchmark;

import static io.eventsql.app.benchmark.Batch.RUN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class BarriersTest {
    private final AtomicLong epochMicros = new AtomicLong(1_000_000);
    private final Barriers barriers = new Barriers(epochMicros::get);

    @Test
    void arrive_all_getTheSameStartAtAFullSecond() {
        assertThat(barriers.arrive(RUN, "start", 0, 3)).isEqualTo(new BarrierState(1, 3, null, 1_000_000));
        assertThat(barriers.arrive(RUN, "start", 2, 3)).isEqualTo(new BarrierState(2, 3, null, 1_000_000));
        epochMicros.set(7_600_000);
        assertThat(barriers.arrive(RUN, "start", 1, 3)).isEqualTo(new BarrierState(3, 3, 9_000_000L, 7_600_000));

        epochMicros.set(9_700_000);
        for (int runner = 0; runner < 3; runner++) {
            assertThat(barriers.arrive(RUN, "start", runner, 3))
                    .isEqualTo(new BarrierState(3, 3, 9_000_000L, 9_700_000));
        }
    }

    @Test
    void arrive_sameRunnerAgain_doesNotCountTwice() {
        barriers.arrive(RUN, "start", 1, 2);
        assertThat(barriers.arrive(RUN, "start", 1, 2)).isEqualTo(new BarrierState(1, 2, null, 1_000_000));
    }

    @Test
    void arrive_singleRunner_startsImmediately() {
        assertThat(barriers.arrive(RUN, "start", 0, 1)).isEqualTo(new BarrierState(1, 1, 2_000_000L, 1_000_000));
    }

    @Test
    void arrive_otherNamesAndRuns_areIndependent() {
        barriers.arrive(RUN, "warmup", 0, 2);

        assertThat(barriers.arrive(RUN, "measure", 1, 2).arrived()).isEqualTo(1);
        assertThat(barriers.arrive("ffffffff", "warmup", 1, 2).arrived()).isEqualTo(1);
        assertThat(barriers.arrive(RUN, "warmup", 1, 2).startAtMicros()).isNotNull();
    }

    @Test
    void arrive_otherNumberOfRunners_isRejected() {
        barriers.arrive(RUN, "start", 0, 2);

        assertThatIllegalStateException()
                .isThrownBy(() -> barriers.arrive(RUN, "start", 1, 3))
                .withMessage("The barrier start of run 0123abcd waits for 2 runners, not for 3");
        assertThat(barriers.arrive(RUN, "start", 0, 2).arrived()).isEqualTo(1);
    }

    @Test
    void forget_closesTheBarriersOfThatRunOnly() {
        barriers.arrive(RUN, "start", 0, 1);
        barriers.arrive("ffffffff", "start", 0, 2);
        barriers.forget(RUN);

        assertThat(barriers.arrive(RUN, "start", 0, 2)).isEqualTo(new BarrierState(1, 2, null, 1_000_000));
        assertThat(barriers.arrive("ffffffff", "start", 1, 2).arrived()).isEqualTo(2);
    }

    @Test
    void arrive_moreBarriersThanKept_forgetsTheOldest() {
        for (int barrier = 0; barrier <= Barriers.BARRIERS_MAX; barrier++) {
            barriers.arrive(RUN, "b" + barrier, 0, 2);
        }

        assertThat(barriers.arrive(RUN, "b1", 1, 2).arrived()).isEqualTo(2);
        assertThat(barriers.arrive(RUN, "b0", 1, 2).arrived()).isEqualTo(1);
    }

    @Test
    void arrive_atTheSameTime_agreeOnOneStart() throws Exception {
        int runners = 8;
        CountDownLatch go = new CountDownLatch(1);
        try (ExecutorService executor = Executors.newFixedThreadPool(runners)) {
            List<Future<BarrierState>> arrivals = new ArrayList<>();
            for (int i = 0; i < runners; i++) {
                int runner = i;
                arrivals.add(executor.submit(() -> {
                    go.await();
                    return barriers.arrive(RUN, "start", runner, runners);
                }));
            }
            go.countDown();
            List<Integer> arrived = new ArrayList<>();
            for (Future<BarrierState> arrival : arrivals) {
                arrived.add(arrival.get().arrived());
            }
            assertThat(arrived).containsExactlyInAnyOrder(1, 2, 3, 4, 5, 6, 7, 8);
        }
        assertThat(barriers.arrive(RUN, "start", 0, runners).startAtMicros()).isEqualTo(2_000_000L);
    }
}
