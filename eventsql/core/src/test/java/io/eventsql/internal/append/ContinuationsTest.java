package io.eventsql.internal.append;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class ContinuationsTest {
    private final Continuations continuations = new Continuations("test");
    private final CountDownLatch testEnds = new CountDownLatch(1);
    private final List<Integer> done = new CopyOnWriteArrayList<>();

    @AfterEach
    void release() {
        testEnds.countDown();
    }

    private void block() {
        try {
            testEnds.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private void awaitDoneOvertaking(int tasks) {
        await().until(() -> {
            continuations.overtakeBlocked();
            return done.size() == tasks;
        });
    }

    private void add(int from, int to) {
        for (int i = from; i < to; i++) {
            int number = i;
            continuations.execute(() -> done.add(number));
        }
    }

    @Test
    void start_tasksAdded_runsThemInOrderOnOneThread() {
        add(0, 1_000);
        assertThat(done).as("nothing runs before start").isEmpty();

        continuations.start();

        await().until(() -> done.size() == 1_000);
        assertThat(done).isSorted();
    }

    @Test
    void start_tasksAddedWhileOthersEnd_runsAll() {
        for (int i = 0; i < 2_000; i++) {
            add(i, i + 1);
            continuations.start();
        }
        await().until(() -> done.size() == 2_000);
    }

    @Test
    void overtakeBlocked_taskBlocks_othersRun() {
        continuations.execute(this::block);
        continuations.execute(this::block);
        add(0, 10);
        continuations.start();

        awaitDoneOvertaking(10);

        assertThat(done).isSorted();
    }

    @Test
    void overtakeBlocked_taskOfBatchBlocks_restOfTheBatchRunsInOrder() {
        List<Runnable> batch = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            int number = i;
            batch.add(number == 3 ? this::block : () -> done.add(number));
        }
        continuations.executeAll(batch);
        add(10, 20);
        continuations.start();

        awaitDoneOvertaking(19);

        assertThat(done).isSorted();
    }

    @Test
    void overtakeBlocked_neverStarted_startsAWorker() {
        add(0, 10);

        continuations.overtakeBlocked();

        await().until(() -> done.size() == 10);
    }

    /** As they do while they wait for a future in a synchronized block, up to Java 23. */
    @Test
    void overtakeBlocked_virtualThreadsOccupyAllProcessors_tasksRun() throws InterruptedException {
        int carriers = Integer.getInteger(
                "jdk.virtualThreadScheduler.parallelism", Runtime.getRuntime().availableProcessors());
        CountDownLatch occupied = new CountDownLatch(carriers);
        for (int i = 0; i < carriers; i++) {
            Thread.startVirtualThread(() -> {
                occupied.countDown();
                while (done.isEmpty() && testEnds.getCount() > 0) {
                    Thread.onSpinWait();
                }
            });
        }
        occupied.await();
        add(0, 10);
        continuations.start();

        awaitDoneOvertaking(10);

        assertThat(done).isSorted();
    }

    @Test
    void start_taskThrowsErrorOrLeavesInterrupt_othersRun() {
        continuations.execute(() -> {
            throw new StackOverflowError("thrown by the test");
        });
        continuations.execute(() -> Thread.currentThread().interrupt());
        continuations.execute(() -> {
            if (!Thread.currentThread().isInterrupted()) {
                done.add(0);
            }
        });

        continuations.start();

        await().until(() -> done.size() == 1);
    }

    @Test
    void close_tasksBlock_runsTheRest() throws InterruptedException {
        continuations.execute(this::block);
        add(0, 10);

        continuations.close(System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(1));

        await().until(() -> done.size() == 10);
    }
}
