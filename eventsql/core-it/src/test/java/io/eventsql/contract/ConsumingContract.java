package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.StartPosition;
import io.eventsql.Storage;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What handlers receive: every event, once, in order, in pages of bounded size. */
abstract class ConsumingContract extends Contract {
    ConsumingContract(int shards, Storage storage) {
        super(shards, storage);
    }

    @Test
    void subscribe_eventsBeforeAndAfterStart_areHandledOnceAndInOrder() {
        String stream = newStream();
        publishTexts(stream, 0, 700);
        Handled handled = new Handled();
        try (Subscription subscription = eventSql.subscribe(consumer(stream, "c"), handled::add)) {
            publishTexts(stream, 700, 1_500);
            handled.awaitSize(1_500).assertOnceAndInOrder();
            assertThat(subscription.isRunning()).isTrue();
        }
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(0, 1_500));
        assertOrderOfKeys(handled);
    }

    private static void assertOrderOfKeys(Handled handled) {
        Map<String, Integer> last = new HashMap<>();
        for (StoredEvent event : handled.events()) {
            Integer before = last.put(event.key(), Integer.parseInt(event.text()));
            assertThat(before == null || before < Integer.parseInt(event.text()))
                    .as("order of %s", event.key())
                    .isTrue();
        }
    }

    @Test
    void subscribe_event_equalsThePublishedOne() {
        String stream = newStream();
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream, "c"), handled::add)) {
            Event event = Event.ofText("k\u00e4se", "v\u00e4lue").withHeader("n\u00e4me", "\ud83d\ude00");
            EventPosition position = publisher.publish(stream, event);
            StoredEvent stored = handled.awaitSize(1).events().getFirst();
            assertThat(stored.position()).isEqualTo(position);
            assertThat(stored.stream()).isEqualTo(stream);
            assertThat(new Event(stored.key(), stored.value(), stored.headers()))
                    .isEqualTo(event);
        }
    }

    @Test
    void subscribe_severalConsumers_eachHandlesAllEvents() {
        String stream = newStream();
        List<Handled> all = List.of(new Handled(), new Handled(), new Handled());
        List<Subscription> subscriptions = new ArrayList<>();
        for (int i = 0; i < all.size(); i++) {
            subscriptions.add(eventSql.subscribe(consumer(stream, "c" + i), all.get(i)::add));
        }
        publishTexts(stream, 0, 300);
        all.forEach(handled -> handled.awaitSize(300).assertOnceAndInOrder());
        subscriptions.forEach(Subscription::close);
    }

    @Test
    void subscribe_anotherConsumerLagsFarBehind_isNotStarved() {
        String stream = newStream();
        for (int i = 0; i < 4; i++) {
            publishTexts(stream, i * 5_000, (i + 1) * 5_000);
        }
        // Lags for the whole test, because its handler is this slow.
        AtomicInteger handledBehind = new AtomicInteger();
        CountDownLatch end = new CountDownLatch(1);
        ConsumerSpec behind = consumer(stream, "behind").withPageEvents(10).withConcurrency(1);
        ConsumerSpec latest = consumer(stream, "latest").withStartPosition(StartPosition.LATEST);
        Handled handled = new Handled();
        int missing;
        try (Subscription slow = eventSql.subscribe(behind, event -> {
                    if (!end.await(2, TimeUnit.MILLISECONDS)) {
                        handledBehind.incrementAndGet();
                    }
                });
                Subscription fast = eventSql.subscribe(latest, handled::add)) {
            publishTexts(stream, 20_000, 20_100);
            handled.awaitSize(100);
            missing = 20_100 - handledBehind.get();
            end.countDown();
        }
        assertThat(missing).as("lag of the other consumer").isPositive();
    }

    @Test
    void subscribeBatch_page_hasLimitedEventsOfOnePartition() {
        String stream = newStream();
        publishTexts(stream, 0, 500);
        Handled handled = new Handled();
        List<List<StoredEvent>> pages = new ArrayList<>();
        ConsumerSpec spec = consumer(stream, "c").withPageEvents(7).withConcurrency(1);
        try (Subscription ignored = eventSql.subscribeBatch(spec, page -> {
            pages.add(List.copyOf(page));
            handled.addAll(page);
        })) {
            handled.awaitSize(500).assertOnceAndInOrder();
        }
        assertThat(pages).allSatisfy(page -> {
            assertThat(page).hasSizeBetween(1, 7);
            assertThat(page.stream().map(e -> e.shard() + "/" + e.partition()).distinct())
                    .hasSize(1);
        });
        assertThat(pages).anyMatch(page -> page.size() == 7);
    }

    @ParameterizedTest
    @ValueSource(ints = {100, 1_500, 3_000})
    void subscribeBatch_page_hasLimitedBytes(int valueBytes) {
        String stream = newStream(StreamSpec.of(newName()).withPartitions(1));
        int pageBytes = 10_000;
        int total = 5 * pageBytes / valueBytes;
        publisher.publishAll(
                stream,
                Stream.generate(() -> Event.of("k", new byte[valueBytes]))
                        .limit(total)
                        .toList());
        List<Integer> sizes = new ArrayList<>();
        Handled handled = new Handled();
        try (Subscription ignored =
                eventSql.subscribeBatch(consumer(stream, "c").withPageBytes(pageBytes), page -> {
                    sizes.add(page.size());
                    handled.addAll(page);
                })) {
            handled.awaitSize(total).assertOnceAndInOrder();
        }
        // A page ends with the event that reaches the limit.
        int most = Math.ceilDiv(pageBytes, valueBytes);
        assertThat(sizes).allMatch(size -> size <= most).contains(most);
    }

    @Test
    void subscribeBatch_eventLargerThanPage_isHandledAlone() {
        String stream = newStream(StreamSpec.of(newName()).withPartitions(1));
        for (int i = 0; i < 3; i++) {
            publisher.publish(stream, Event.of("k", new byte[5_000]));
        }
        List<Integer> sizes = new ArrayList<>();
        Handled handled = new Handled();
        try (Subscription ignored =
                eventSql.subscribeBatch(consumer(stream, "c").withPageBytes(1_024), page -> {
                    sizes.add(page.size());
                    handled.addAll(page);
                })) {
            handled.awaitSize(3).assertOnceAndInOrder();
        }
        assertThat(sizes).containsOnly(1);
    }

    @Test
    void subscribe_acrossSegments_handlesAllEvents() {
        EventSql small = cluster.open(settings -> settings.maxBatchEvents(50));
        String stream = newStream(StreamSpec.of(newName()).withPartitions(2).withSegmentSize(100));
        Handled handled = new Handled();
        try (Subscription ignored = small.subscribe(consumer(stream, "c").withPageEvents(30), handled::add)) {
            for (int i = 0; i < 20; i++) {
                List<Event> events = IntStream.range(i * 50, i * 50 + 50)
                        .mapToObj(n -> Event.ofText("key-" + n % 20, "" + n))
                        .toList();
                small.publisher().publishAll(stream, events);
            }
            handled.awaitSize(1_000).assertOnceAndInOrder();
        }
        assertOrderOfKeys(handled);
    }

    @Test
    void subscribe_concurrencyOne_handlesOneAtATime() {
        String stream = newStream();
        publishTexts(stream, 0, 200);
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream, "c").withConcurrency(1), event -> {
            most.accumulateAndGet(inside.incrementAndGet(), Math::max);
            Thread.yield();
            inside.decrementAndGet();
            handled.add(event);
        })) {
            handled.awaitSize(200);
        }
        assertThat(most).hasValue(1);
    }

    @Test
    void subscribe_concurrencyBelowPartitions_partitionsTakeTurns() {
        String stream = newStream();
        for (int i = 0; i < 4; i++) {
            publishTexts(stream, i * 1_000, (i + 1) * 1_000);
        }
        Handled handled = new Handled();
        ConsumerSpec spec = consumer(stream, "c").withConcurrency(1).withPageEvents(10);
        try (Subscription ignored = eventSql.subscribe(spec, handled::add)) {
            handled.awaitSize(4_000).assertOnceAndInOrder();
        }
        // Per shard, because the consumer joins each shard at a different time.
        for (int shard = 0; shard < shards; shard++) {
            int number = shard;
            List<Integer> partitions = handled.positions().stream()
                    .filter(position -> position.shard() == number)
                    .map(EventPosition::partition)
                    .toList();
            assertThat(new HashSet<>(partitions.subList(0, partitions.size() / 2)))
                    .as("partitions handled in the first half of shard %d", shard)
                    .isEqualTo(new HashSet<>(partitions));
        }
    }

    @Test
    void subscribe_partitionBlocked_othersContinue() {
        String stream = newStream();
        EventPosition blocked = publisher.publish(stream, Event.ofText("blocked", "x"));
        CountDownLatch release = new CountDownLatch(1);
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream, "c"), event -> {
            if (event.position().equals(blocked)) {
                release.await();
            }
            handled.add(event);
        })) {
            List<EventPosition> others = publishTexts(stream, 0, 200).stream()
                    .filter(p -> p.shard() != blocked.shard() || p.partition() != blocked.partition())
                    .toList();
            handled.awaitSize(others.size());
            assertThat(handled.positions()).containsExactlyInAnyOrderElementsOf(others);
            release.countDown();
            handled.awaitSize(201).assertOnceAndInOrder();
        }
    }
}
