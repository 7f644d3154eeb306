package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.Subscription;
import io.eventsql.fixture.ConsumerFixture;
import io.eventsql.fixture.Handled;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: while handlers are stuck, what a member keeps and what is handled again after a crash stays bounded, and other
 * partitions continue. Method: handlers wait for a latch while more is stored than the limits allow.
 */
class BoundedConsumingIT extends ConsumerFixture {
    private static final int PADDING_BYTES = 10_000;

    private void publishMany(String stream, int events, int keys) {
        for (int from = 0; from < events; from += 5_000) {
            publish(stream, from, Math.min(events, from + 5_000), keys);
        }
    }

    /** Without a setting, because the default must be a limit, too. */
    @Test
    void keyConcurrency_oneKeyIsStuck_handlingEndsAtTheWindow() throws Exception {
        String stream = newStream(1);
        int events = 22_000;
        publishMany(stream, events, 100);
        CountDownLatch release = new CountDownLatch(1);
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream).withKeyConcurrency(8), event -> {
            if (event.offset() == 0) {
                release.await();
            }
            handled.add(event);
        })) {
            int window = 20_000;
            handled.awaitSize(window - window / 100); // all in the window except those of the stuck key
            await().during(Duration.ofSeconds(2)).until(() -> handled.size() <= window);
            assertThat(handled.events()).allMatch(event -> event.offset() < window);
            release.countDown();
            awaitLag(stream, 0);
        }
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(0, events));
        assertOrderOfKeys(handled.events());
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 8})
    void maxEventsAhead_anySize_everythingIsHandledOnce(int keyConcurrency) {
        String stream = newStream(1);
        publishMany(stream, 300, 10);
        Handled handled = new Handled();
        ConsumerSpec spec = consumer(stream)
                .withKeyConcurrency(keyConcurrency)
                .withMaxEventsAhead(7)
                .withPageEvents(100)
                .withCommitInterval(Duration.ofMinutes(1)); // the window's end requests a commit
        try (Subscription ignored = eventSql.subscribe(spec, handled::add)) {
            handled.awaitSize(300);
        } // commits the last ones
        awaitLag(stream, 0);
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(0, 300));
        assertOrderOfKeys(handled.events());
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 4})
    void maxFetchedBytes_partitionsAreStuck_othersContinue(int keyConcurrency) throws Exception {
        int partitions = 4;
        String stream = newStream(partitions);
        for (int i = 0; i < 10; i++) {
            eventSql.publisher()
                    .publishAll(
                            stream,
                            IntStream.range(0, 40)
                                    .mapToObj(key -> Event.of("key-" + key, new byte[PADDING_BYTES]))
                                    .toList());
        }
        CountDownLatch release = new CountDownLatch(1);
        Set<Integer> stuck = ConcurrentHashMap.newKeySet();
        Handled handled = new Handled();
        ConsumerSpec spec = consumer(stream)
                .withKeyConcurrency(keyConcurrency)
                .withMaxFetchedBytes(30 * PADDING_BYTES); // 400 events are stored
        try (Subscription ignored = eventSql.subscribe(spec, event -> {
            if (event.partition() % 2 == 0) {
                stuck.add(event.partition());
                release.await();
            }
            handled.add(event);
        })) {
            int others =
                    (int) cluster.sum("SELECT count(*) FROM eventsql.events_" + stream + " WHERE partition % 2 = 1");
            handled.awaitSize(others);
            assertThat(stuck).hasSize(partitions / 2);
            release.countDown();
            handled.awaitSize(400);
            awaitLag(stream, 0);
        }
        assertThat(handled.size()).isEqualTo(400);
    }

    @Test
    void maxFetchedBytes_eventIsLargerThanTheBudget_isHandled() {
        String stream = newStream(2);
        eventSql.publisher()
                .publishAll(
                        stream,
                        Stream.generate(() -> Event.of("k", new byte[200_000]))
                                .limit(5)
                                .toList());
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream).withMaxFetchedBytes(64 << 10), handled::add)) {
            handled.awaitSize(5).assertOnceAndInOrder();
        }
    }

    /** Headers compress well: their stored size must not be taken for their size in memory. */
    @Test
    void pageBytes_keysAndHeaders_count() {
        String stream = newStream(1);
        String header = "x".repeat(10_000);
        eventSql.publisher()
                .publishAll(
                        stream,
                        Stream.generate(() -> Event.ofText("k", "v").withHeader("h", header))
                                .limit(100)
                                .toList());
        AtomicBoolean isLimited = new AtomicBoolean(true);
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribeBatch(consumer(stream).withPageBytes(50_000), events -> {
            isLimited.compareAndSet(true, events.size() <= 5);
            handled.addAll(events);
        })) {
            handled.awaitSize(100).assertOnceAndInOrder();
        }
        assertThat(isLimited).isTrue();
    }
}
