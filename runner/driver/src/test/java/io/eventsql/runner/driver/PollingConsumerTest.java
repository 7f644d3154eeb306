package io.eventsql.runner.driver;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(30)
class PollingConsumerTest {
    private final AtomicInteger polls = new AtomicInteger();
    private final CompletableFuture<Throwable> failure = new CompletableFuture<>();

    @Test
    void close_pausedBetweenPolls_endsAtOnce() throws Exception {
        CountDownLatch polled = new CountDownLatch(1);
        try (PollingConsumer consumer = PollingConsumer.start(
                "paused",
                () -> {
                    polls.incrementAndGet();
                    polled.countDown();
                    return 3_600_000;
                },
                failure::complete)) {
            polled.await();
        }

        assertThat(polls).hasValue(1);
        assertThat(failure).isNotDone();
    }

    @Test
    void close_whilePolling_waitsForTheDelivery() throws Exception {
        CountDownLatch delivering = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        AtomicInteger delivered = new AtomicInteger();
        PollingConsumer consumer = PollingConsumer.start(
                "delivering",
                () -> {
                    delivering.countDown();
                    goOn.await();
                    delivered.incrementAndGet();
                    return 0;
                },
                failure::complete);
        delivering.await();
        Thread closing = Thread.ofPlatform().start(consumer::close);
        while (closing.getState() != Thread.State.WAITING) {
            Thread.onSpinWait();
        }
        goOn.countDown();
        closing.join();

        assertThat(delivered).hasPositiveValue();
        assertThat(failure).isNotDone();
    }

    @Test
    void poll_fails_isReportedAndEndsTheConsumer() {
        try (PollingConsumer consumer = PollingConsumer.start(
                "failing",
                () -> {
                    if (polls.incrementAndGet() == 3) {
                        throw new IllegalStateException("refused");
                    }
                    return 0;
                },
                failure::complete)) {
            assertThat(failure.join()).hasMessage("refused");
            assertThat(consumer).isNotNull();
        }

        assertThat(polls).hasValue(3);
    }
}
