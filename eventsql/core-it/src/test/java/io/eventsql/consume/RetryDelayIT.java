package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventHandler;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.PartitionState;
import io.eventsql.StartPosition;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.fixture.ConsumerFixture;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.SwitchableDataSource;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * An event that waits an hour for its next attempt: it holds no permit that other events need, and nothing waits for the
 * end of the hour.
 */
class RetryDelayIT extends ConsumerFixture {
    private static final Duration HOUR = Duration.ofHours(1);

    private static ConsumerSpec hourly(String stream) {
        return consumer(stream).withRetryDelay(HOUR, HOUR);
    }

    /** Records events, except those of partition 0, which fail, and counts these. */
    private static EventHandler failingInPartition0(Handled handled, Set<StoredEvent> failed) {
        return event -> {
            if (event.partition() == 0) {
                failed.add(event);
                throw new IllegalStateException("on purpose");
            }
            handled.add(event);
        };
    }

    private int eventsOutsidePartition0(String stream) {
        return (int) state(stream).stream()
                .filter(p -> p.partition() != 0)
                .mapToLong(PartitionState::head)
                .sum();
    }

    private static void awaitFailure(Set<StoredEvent> failed) {
        await().atMost(Duration.ofSeconds(120)).until(() -> !failed.isEmpty());
    }

    @Test
    void delay_onePermit_otherPartitionsAreHandled() {
        String stream = newStream();
        publish(stream, 0, 200, 50);
        Handled handled = new Handled();
        Set<StoredEvent> failed = ConcurrentHashMap.newKeySet();
        try (Subscription ignored =
                eventSql.subscribe(hourly(stream).withConcurrency(1), failingInPartition0(handled, failed))) {
            awaitFailure(failed);
            handled.awaitSize(eventsOutsidePartition0(stream));
            publish(stream, 200, 400, 50);
            handled.awaitSize(eventsOutsidePartition0(stream));
            assertThat(failed).as("its order is kept").hasSize(1);
        }
    }

    @Test
    void delay_onePermitAndTheRoomForKeysIsUsedUp_otherPartitionsAreHandled() {
        String stream = newStream();
        Handled handled = new Handled();
        Set<StoredEvent> failed = ConcurrentHashMap.newKeySet();
        try (Subscription ignored = eventSql.subscribe(
                hourly(stream).withConcurrency(1).withKeyConcurrency(2).withPageEvents(5),
                failingInPartition0(handled, failed))) {
            publish(stream, 0, 200, 50); // more than twice pageEvents in partition 0
            awaitFailure(failed);
            handled.awaitSize(eventsOutsidePartition0(stream));
        }
    }

    @Test
    void delay_asManyKeysAsPermits_otherKeysAreHandled() {
        String stream = newStream(1);
        publish(stream, 0, 200, 20);
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(hourly(stream).withKeyConcurrency(2), event -> {
            if (Integer.parseInt(event.text()) % 20 < 2) {
                throw new IllegalStateException("on purpose");
            }
            handled.add(event);
        })) {
            handled.awaitSize(180);
            assertOrderOfKeys(handled.events());
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 8})
    void pause_duringDelay_releasesThePartition(int keyConcurrency) {
        String stream = newStream(1);
        publish(stream, 0, 20, 5);
        Set<StoredEvent> failed = ConcurrentHashMap.newKeySet();
        try (Subscription ignored = eventSql.subscribe(
                hourly(stream).withKeyConcurrency(keyConcurrency), failingInPartition0(new Handled(), failed))) {
            awaitFailure(failed);
            eventSql.consumer(stream, "c").pause();
            await().atMost(Duration.ofSeconds(120))
                    .until(() -> state(stream).stream().allMatch(p -> p.member() == null));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 8})
    void seek_duringDelay_continuesAtTheNewOffset(int keyConcurrency) {
        String stream = newStream(1);
        publish(stream, 0, 20, 5);
        Set<String> failed = ConcurrentHashMap.newKeySet();
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(hourly(stream).withKeyConcurrency(keyConcurrency), event -> {
            if (Integer.parseInt(event.text()) < 20) {
                failed.add(event.text());
                throw new IllegalStateException("on purpose");
            }
            handled.add(event);
        })) {
            await().atMost(Duration.ofSeconds(120)).until(() -> !failed.isEmpty());
            eventSql.consumer(stream, "c").seek(StartPosition.LATEST);
            publish(stream, 20, 40, 5);
            handled.awaitSize(20);
            awaitLag(stream, 0);
        }
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(20, 40));
    }

    @Test
    void join_duringDelay_movesPartitions() {
        String stream = newStream(2);
        publish(stream, 0, 20, 10);
        Set<Integer> failed = ConcurrentHashMap.newKeySet();
        EventHandler failing = event -> {
            failed.add(event.partition());
            throw new IllegalStateException("on purpose");
        };
        try (EventSql other = cluster.open();
                Subscription ignored = eventSql.subscribe(hourly(stream), failing)) {
            await().atMost(Duration.ofSeconds(120)).until(() -> failed.size() == 2);
            try (Subscription second = other.subscribe(hourly(stream), failing)) {
                awaitMembers(stream, 2);
                assertThat(second.isRunning()).isTrue();
            }
        }
    }

    @Test
    void interrupt_duringDelay_changesNothing() {
        String stream = newStream(1);
        publish(stream, 0, 3, 1);
        Set<Thread> threads = ConcurrentHashMap.newKeySet();
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(
                consumer(stream).withRetryDelay(Duration.ofMillis(300), Duration.ofMillis(300)), event -> {
                    if (threads.add(Thread.currentThread())) {
                        throw new IllegalStateException("on purpose");
                    }
                    handled.add(event);
                })) {
            await().atMost(Duration.ofSeconds(120)).until(() -> !threads.isEmpty());
            threads.forEach(Thread::interrupt);
            handled.awaitSize(3);
            awaitLag(stream, 0);
        }
        assertThat(handled.texts()).containsExactlyElementsOf(texts(0, 3));
    }

    @Test
    void shardUnavailable_onePermit_eventsOfTheOtherAreHandled() {
        try (TestCluster two = TestCluster.ofShards(2)) {
            SwitchableDataSource second =
                    new SwitchableDataSource(two.dataSources().get(1));
            AtomicBoolean available = new AtomicBoolean(true);
            Handled handled = new Handled();
            try (EventSql both = EventSql.builder(List.of(two.dataSources().getFirst(), second))
                    .build()) {
                both.createStream(TestStreams.of("two").withPartitions(1));
                List<Event> events = IntStream.range(0, 40)
                        .mapToObj(i -> Event.ofText("key-" + i, Integer.toString(i)))
                        .toList();
                List<EventPosition> positions = both.publisher().publishAll("two", events);
                List<Event> ofFirst = IntStream.range(0, 40)
                        .filter(i -> positions.get(i).shard() == 0)
                        .mapToObj(events::get)
                        .toList();
                assertThat(ofFirst).hasSizeBetween(1, 39);
                try (Subscription ignored = both.subscribeTransactional(
                        ConsumerSpec.of("two", "c").withConcurrency(1), (event, connection) -> {
                            if (event.shard() == 1) {
                                second.setAvailable(false);
                                available.set(false);
                            } else {
                                handled.add(event);
                            }
                        })) {
                    await().atMost(Duration.ofSeconds(120)).until(() -> !available.get());
                    both.publisher().publishAll("two", ofFirst);
                    handled.awaitSize(2 * ofFirst.size());
                    second.setAvailable(true);
                }
            }
        }
    }
}
