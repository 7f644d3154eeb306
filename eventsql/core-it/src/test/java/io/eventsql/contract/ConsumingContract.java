package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.StartPosition;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** What handlers receive: every event, once, in order, whatever other partitions and consumers do. */
abstract class ConsumingContract extends Contract {
    ConsumingContract(ContractCluster databases) {
        super(databases);
    }

    @Test
    void subscribe_eventsBeforeAndAfterStart_areHandledOnceAndInOrder() {
        String stream = newStream();
        publishTexts(stream, 0, 200);
        Handled handled = new Handled();
        try (Subscription subscription = eventSql.subscribe(consumer(stream, "c"), handled::add)) {
            publishTexts(stream, 200, 400);
            handled.awaitSize(400).assertOnceAndInOrder();
            assertThat(subscription.isRunning()).isTrue();
        }
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(0, 400));
        assertOrderOfKeys(handled);
    }

    @Test
    void subscribe_severalConsumers_eachHandlesAllEvents() {
        String stream = newStream();
        List<Handled> all = List.of(new Handled(), new Handled());
        List<Subscription> subscriptions = new ArrayList<>();
        for (int i = 0; i < all.size(); i++) {
            subscriptions.add(eventSql.subscribe(consumer(stream, "c" + i), all.get(i)::add));
        }
        publishTexts(stream, 0, 100);
        all.forEach(handled -> handled.awaitSize(100).assertOnceAndInOrder());
        subscriptions.forEach(Subscription::close);
    }

    @Test
    void subscribe_anotherConsumerLagsFarBehind_isNotStarved() {
        String stream = newStream();
        publishTexts(stream, 0, 4_000);
        // Lags for the whole test, because its handler is this slow.
        AtomicInteger handledBehind = new AtomicInteger();
        CountDownLatch end = new CountDownLatch(1);
        ConsumerSpec behind = consumer(stream, "behind").withPageEvents(5).withConcurrency(1);
        ConsumerSpec latest = consumer(stream, "latest").withStartPosition(StartPosition.LATEST);
        Handled handled = new Handled();
        int missing;
        try (Subscription slow = eventSql.subscribe(behind, event -> {
                    if (!end.await(10, TimeUnit.MILLISECONDS)) {
                        handledBehind.incrementAndGet();
                    }
                });
                Subscription fast = eventSql.subscribe(latest, handled::add)) {
            publishTexts(stream, 4_000, 4_100);
            handled.awaitSize(100);
            missing = 4_100 - handledBehind.get();
            end.countDown();
        }
        assertThat(missing).as("lag of the other consumer").isPositive();
    }

    @Test
    void subscribe_concurrencyOne_handlesOneAtATime() {
        String stream = newStream();
        publishTexts(stream, 0, 100);
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream, "c").withConcurrency(1), event -> {
            most.accumulateAndGet(inside.incrementAndGet(), Math::max);
            Thread.yield();
            inside.decrementAndGet();
            handled.add(event);
        })) {
            handled.awaitSize(100);
        }
        assertThat(most).hasValue(1);
    }

    @Test
    void subscribe_concurrencyBelowPartitions_partitionsTakeTurns() {
        String stream = newStream(4);
        publishTexts(stream, 0, 2_400);
        Handled handled = new Handled();
        ConsumerSpec spec = consumer(stream, "c").withConcurrency(1).withPageEvents(10);
        try (Subscription ignored = eventSql.subscribe(spec, handled::add)) {
            handled.awaitSize(2_400).assertOnceAndInOrder();
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
            List<EventPosition> others = publishTexts(stream, 0, 100).stream()
                    .filter(p -> p.shard() != blocked.shard() || p.partition() != blocked.partition())
                    .toList();
            handled.awaitSize(others.size());
            assertThat(handled.positions()).containsExactlyInAnyOrderElementsOf(others);
            release.countDown();
            handled.awaitSize(101).assertOnceAndInOrder();
        }
    }
}
