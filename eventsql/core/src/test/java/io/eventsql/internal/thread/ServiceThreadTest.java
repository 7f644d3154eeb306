package io.eventsql.internal.thread;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class ServiceThreadTest {
    private static final long SECONDS_MAX = 30;

    private final BlockingQueue<ServiceThread.Task> tasks = new SynchronousQueue<>();
    private final BlockingQueue<Thread> finished = new LinkedBlockingQueue<>();
    private final ServiceThread thread = new ServiceThread("service-thread-test", () -> {
        tasks.take().run();
        finished.add(Thread.currentThread());
    });

    @AfterEach
    void close() throws InterruptedException {
        thread.closeNow();
        assertThat(thread.join(TimeUnit.SECONDS.toNanos(SECONDS_MAX))).isTrue();
    }

    @Test
    void repeatsItsTask_afterAnyThrowable() throws Exception {
        thread.start();
        offer(() -> {
            throw new IllegalStateException("unexpected");
        });
        offer(() -> {
            throw new OutOfMemoryError("no heap left");
        });
        offer(() -> {
            throw new NoClassDefFoundError("a class");
        });

        offer(() -> {});

        assertThat(finished.poll(SECONDS_MAX, TimeUnit.SECONDS)).isNotNull();
        assertThat(thread.isAlive()).isTrue();
    }

    @Test
    void repeatsItsTask_afterAnInterruptOfForeignCode() throws Exception {
        thread.start();
        offer(() -> Thread.currentThread().interrupt());
        Thread worker = finished.poll(SECONDS_MAX, TimeUnit.SECONDS);
        offer(() -> {});
        assertThat(finished.poll(SECONDS_MAX, TimeUnit.SECONDS)).isSameAs(worker);

        worker.interrupt(); // while it waits

        offer(() -> {});
        assertThat(finished.poll(SECONDS_MAX, TimeUnit.SECONDS)).isSameAs(worker);
    }

    @Test
    void failure_isThatOfTheLastRepetition() throws Exception {
        IllegalStateException expected = new IllegalStateException("unexpected");
        thread.start();
        offer(() -> {
            throw expected;
        });
        offer(() -> assertThat(thread.failure()).isSameAs(expected));
        assertThat(finished.poll(SECONDS_MAX, TimeUnit.SECONDS)).isNotNull();

        offer(() -> assertThat(thread.failure()).isNull());

        assertThat(finished.poll(SECONDS_MAX, TimeUnit.SECONDS)).isNotNull();
    }

    @Test
    void closeNow_endsAWaitingTask() throws Exception {
        thread.start();
        offer(() -> {});
        assertThat(finished.poll(SECONDS_MAX, TimeUnit.SECONDS)).isNotNull();

        thread.closeNow();

        assertThat(thread.join(TimeUnit.SECONDS.toNanos(SECONDS_MAX))).isTrue();
    }

    private void offer(ServiceThread.Task task) throws InterruptedException {
        assertThat(tasks.offer(task, SECONDS_MAX, TimeUnit.SECONDS)).isTrue();
    }
}
