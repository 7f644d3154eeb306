package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventPosition;
import io.eventsql.EventPublisher;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Closing subscriptions and instances: running calls complete, no event is lost or handled twice. */
abstract class ClosingContract extends Contract {
    ClosingContract(ContractCluster databases) {
        super(databases);
    }

    @Test
    void close_whileEventsArrive_nextSubscriptionResumesExactlyThere() throws Exception {
        String stream = newStream();
        AtomicBoolean end = new AtomicBoolean();
        AtomicInteger published = new AtomicInteger();
        Handled handled = new Handled();
        try (ExecutorService executor = Executors.newSingleThreadExecutor()) {
            Future<?> publishing = executor.submit(() -> {
                while (!end.get() && published.get() < 200_000) {
                    publishTexts(stream, published.get(), published.addAndGet(20));
                    TimeUnit.MILLISECONDS.sleep(5); // what a round needs comes within some of these calls
                }
                return null;
            });
            for (int round = 1; round <= 8; round++) {
                ConsumerSpec spec = consumer(stream, "c").withCommitInterval(Duration.ofMillis(1));
                Subscription subscription = round % 2 == 0
                        ? eventSql.subscribe(spec, handled::add)
                        : eventSql.subscribeBatch(spec, handled::addAll);
                handled.awaitSize(handled.size() + 100);
                subscription.close();
                assertThat(subscription.isRunning()).isFalse();
                assertThat(committed(stream, "c")).as("round %d", round).isEqualTo(handled.size());
            }
            end.set(true);
            publishing.get(120, TimeUnit.SECONDS);
        }
        handled.assertOnceAndInOrder();
    }

    @Test
    void close_handlerExceedsTimeout_returnsFalseAndEventsAreRedelivered() {
        String stream = newStream(1);
        publisher.publish(stream, Event.ofText("x"));
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        // The partition is free again when the lease has expired.
        EventSql process =
                cluster.open(settings -> settings.lease(Duration.ofSeconds(1)).heartbeat(Duration.ofMillis(200)));
        Subscription subscription = process.subscribe(consumer(stream, "c"), event -> {
            begun.countDown();
            release.await();
        });
        await().until(() -> begun.getCount() == 0);
        assertThat(subscription.close(Duration.ofMillis(100))).isFalse();
        assertThat(subscription.isRunning()).isFalse();
        release.countDown();
        Handled handled = new Handled();
        try (Subscription ignored = process.subscribe(consumer(stream, "c"), handled::add)) {
            handled.awaitSize(1);
        }
    }

    @Test
    void close_handlerEndsInTime_returnsTrueAndCommits() {
        String stream = newStream(1);
        publisher.publish(stream, Event.ofText("k", "x"));
        publisher.publish(stream, Event.ofText("k", "y"));
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        Handled handled = new Handled();
        Subscription subscription = eventSql.subscribe(consumer(stream, "c"), event -> {
            begun.countDown();
            release.await();
            handled.add(event);
        });
        await().until(() -> begun.getCount() == 0);
        CompletableFuture<Boolean> closed =
                CompletableFuture.supplyAsync(() -> subscription.close(Duration.ofSeconds(30)));
        await().until(() -> !subscription.isRunning());
        release.countDown();
        assertThat(closed.join()).isTrue();
        assertThat(handled.texts()).as("no handler starts after close").containsExactly("x");
        assertThat(committed(stream, "c")).isEqualTo(1);
        assertThat(subscription.close(Duration.ZERO)).as("second close").isTrue();
    }

    @Test
    void closeInstance_bufferedEvents_areStoredAndLaterCallsAreRejected() {
        EventSql closing = cluster.open();
        String stream = newStream();
        EventPublisher ofClosing = closing.publisher();
        List<CompletableFuture<EventPosition>> futures = IntStream.range(0, 1_000)
                .mapToObj(i -> ofClosing.publishAsync(stream, Event.ofText("key-" + i % 10, "" + i)))
                .toList();
        assertThat(closing.close(Duration.ofSeconds(30))).isTrue();
        assertThat(futures).allMatch(future -> future.isDone() && !future.isCompletedExceptionally());
        assertThat(readAll(stream)).hasSize(1_000);
        assertThatExceptionOfType(EventNotStoredException.class)
                .isThrownBy(() -> ofClosing.publish(stream, Event.ofText("late")))
                .withMessageContaining("closed");
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(() -> closing.subscribe(consumer(stream, "c"), event -> {}))
                .withMessageContaining("closed");
        assertThat(closing.close(Duration.ZERO)).as("second close").isTrue();
        assertThat(readAll(stream)).hasSize(1_000);
    }

    @Test
    void closeInstance_handlerExceedsTimeout_returnsFalse() {
        EventSql closing = cluster.open();
        String stream = newStream();
        publishTexts(stream, 0, 10);
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        closing.subscribe(consumer(stream, "c"), event -> {
            begun.countDown();
            release.await();
        });
        await().until(() -> begun.getCount() == 0);
        assertThat(closing.close(Duration.ofMillis(200))).isFalse();
        release.countDown();
    }

    @Test
    void closeInstance_libraryThreads_terminate() {
        String stream = newStream();
        Set<Thread> before = libraryThreads();
        EventSql closing = cluster.open();
        Handled handled = new Handled();
        closing.subscribe(consumer(stream, "c"), handled::add);
        closing.publisher().publish(stream, Event.ofText("x"));
        handled.awaitSize(1);
        Set<Thread> own = libraryThreads();
        own.removeAll(before);
        assertThat(own).extracting(Thread::getName).anyMatch(name -> name.startsWith("eventsql-append-shard0"));
        assertThat(closing.close(Duration.ofSeconds(30))).isTrue();
        await().untilAsserted(() -> assertThat(own).noneMatch(Thread::isAlive));
        assertThat(committed(stream, "c")).isEqualTo(1);
    }

    private static Set<Thread> libraryThreads() {
        Set<Thread> threads = new HashSet<>(Thread.getAllStackTraces().keySet());
        threads.removeIf(thread -> !thread.getName().startsWith("eventsql-") || !thread.isAlive());
        return threads;
    }
}
