package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.InvalidInputException;
import io.eventsql.ParkedEvent;
import io.eventsql.RetryPolicy;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Events without a value: every path keeps them apart from events with an empty one. */
abstract class TombstonesContract extends Contract {
    private static final List<Event> EVENTS = List.of(
            Event.ofText("a", "1"),
            Event.tombstone("a").withHeader("reason", "closed"),
            Event.of("a", new byte[0]),
            Event.ofText("a", "null"),
            Event.tombstone("b"),
            Event.tombstone("c"));

    TombstonesContract(ContractCluster databases) {
        super(databases);
    }

    private static void assertIsTombstone(StoredEvent event) {
        assertThat(event.isTombstone()).as("%s", event).isTrue();
        assertThat(event.isErased()).isFalse();
        assertThat(event.value()).isEmpty();
        assertThat(event.text()).isEmpty();
        assertThat(event.toString()).contains("tombstone");
    }

    /** Asserts that these are all of {@link #EVENTS}, those of a key in order. */
    private static void assertAll(List<StoredEvent> stored) {
        assertThat(stored).hasSize(EVENTS.size());
        for (String key : List.of("a", "b", "c")) {
            List<Event> expected =
                    EVENTS.stream().filter(e -> key.equals(e.key())).toList();
            List<Event> found = stored.stream()
                    .filter(e -> key.equals(e.key()))
                    .map(e -> new Event(e.key(), e.value(), e.headers(), e.isTombstone()))
                    .toList();
            assertThat(found).isEqualTo(expected);
        }
        stored.stream().filter(StoredEvent::isTombstone).forEach(TombstonesContract::assertIsTombstone);
    }

    @Test
    void publish_oneByOneInOneCallOrAsync_isReadAsTombstone() throws Exception {
        String oneByOne = newStream();
        EVENTS.forEach(event -> publisher.publish(oneByOne, event));
        String all = newStream();
        publisher.publishAll(all, EVENTS);
        String async = newStream();
        for (Event event : EVENTS) {
            publisher.publishAsync(async, event).get(120, TimeUnit.SECONDS);
        }
        String allAsync = newStream();
        publisher.publishAllAsync(allAsync, EVENTS).get(120, TimeUnit.SECONDS);
        for (String stream : List.of(oneByOne, all, async, allAsync)) {
            assertAll(readAll(stream));
        }
    }

    @Test
    void subscribe_inAnyWay_handlesTombstones() {
        String stream = newStream();
        publisher.publishAll(stream, EVENTS);
        Handled handled = new Handled();
        Handled batches = new Handled();
        Handled transactional = new Handled();
        Handled ofLanes = new Handled();
        try (Subscription one = eventSql.subscribe(consumer(stream, "one"), handled::add);
                Subscription batch = eventSql.subscribeBatch(consumer(stream, "batch"), batches::addAll);
                Subscription exactlyOnce = eventSql.subscribeTransactional(
                        consumer(stream, "transactional"), (event, connection) -> transactional.add(event));
                Subscription lanes =
                        eventSql.subscribe(consumer(stream, "lanes").withKeyConcurrency(4), ofLanes::add)) {
            for (Handled each : List.of(handled, batches, transactional, ofLanes)) {
                assertAll(each.awaitSize(EVENTS.size()).events());
            }
        }
    }

    @Test
    void tombstones_moreThanAPage_areAllHandled() {
        String stream = newStream();
        publisher.publishAll(
                stream,
                IntStream.range(0, 60).mapToObj(i -> Event.tombstone("k" + i)).toList());
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream, "c").withPageEvents(7), handled::add)) {
            handled.awaitSize(60).assertOnceAndInOrder();
        }
        assertThat(handled.events()).allMatch(StoredEvent::isTombstone);
    }

    @Test
    void tombstone_keyOrHeadersTooLarge_isRejected() {
        String stream = newStream();
        try (EventSql small = cluster.open(settings -> settings.maxKeyBytes(3).maxHeadersBytes(30))) {
            assertThatExceptionOfType(InvalidInputException.class)
                    .isThrownBy(() -> small.publisher().publish(stream, Event.tombstone("long")))
                    .satisfies(e -> assertThat(e.field()).isEqualTo("event.key"));
            assertThatExceptionOfType(InvalidInputException.class)
                    .isThrownBy(() -> small.publisher()
                            .publish(stream, Event.tombstone("k").withHeader("h", "x".repeat(40))))
                    .satisfies(e -> assertThat(e.field()).isEqualTo("event.headers"));
        }
        assertThat(readAll(stream)).isEmpty();
    }

    @Test
    void jsonView_tombstone_hasNoValue() throws SQLException {
        String stream = newStream(StreamSpec.of(newName()).withPartitions(1).asJson());
        publisher.publish(stream, Event.ofText("k", "{\"n\": 1}"));
        EventPosition tombstone = publisher.publish(stream, Event.tombstone("k"));
        publisher.publish(stream, Event.ofText("k", "null"));
        assertThat(Sql.query(
                        database(tombstone.shard()),
                        "SELECT value FROM eventsql.events_" + stream + "__json ORDER BY event_offset"))
                .containsExactly("{\"n\": 1}", null, "null");
        assertThat(Sql.query(
                        database(tombstone.shard()),
                        "SELECT event_offset FROM eventsql.events_" + stream
                                + " WHERE value IS NULL AND erased_at IS NULL"))
                .containsExactly("1");
    }

    @Test
    void parkedTombstone_redriven_isHandledAsTombstone() {
        String stream = newStream();
        publisher.publishAll(stream, EVENTS);
        AtomicBoolean fail = new AtomicBoolean(true);
        Handled handled = new Handled();
        ConsumerSpec parking = consumer(stream, "c")
                .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                .withFailurePolicy(FailurePolicy.PARK_KEY);
        try (Subscription ignored = eventSql.subscribe(parking, event -> {
            if (fail.get()) {
                throw new IllegalStateException("on purpose");
            }
            handled.add(event);
        })) {
            List<StoredEvent> parked = awaitParked(stream);
            assertAll(parked);
            fail.set(false);
            eventSql.consumer(stream, "c").redrive();
            assertAll(handled.awaitSize(EVENTS.size()).events());
        }
    }

    private List<StoredEvent> awaitParked(String stream) {
        List<StoredEvent> parked = new ArrayList<>();
        await().atMost(Duration.ofSeconds(120)).until(() -> {
            parked.clear();
            eventSql.consumer(stream, "c").parkedEvents(100).stream()
                    .map(ParkedEvent::event)
                    .forEach(parked::add);
            return parked.size() == EVENTS.size();
        });
        return parked;
    }

    @Test
    void deadLetteredTombstone_isATombstoneThereAndRedriven() {
        String stream = newStream();
        publisher.publishAll(stream, EVENTS);
        AtomicBoolean fail = new AtomicBoolean(true);
        Handled handled = new Handled();
        ConsumerSpec deadLettering = consumer(stream, "c")
                .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                .withFailurePolicy(FailurePolicy.DEAD_LETTER);
        try (Subscription ignored = eventSql.subscribe(deadLettering, event -> {
            if (fail.get()) {
                throw new IllegalStateException("on purpose");
            }
            handled.add(event);
        })) {
            assertAll(awaitParked(stream));
            List<StoredEvent> letters = readAll(stream + "_dead_letter");
            assertThat(letters).hasSize(EVENTS.size());
            assertThat(letters.stream().filter(StoredEvent::isTombstone).map(StoredEvent::key))
                    .containsExactlyInAnyOrder("a", "b", "c");
            fail.set(false);
            eventSql.consumer(stream, "c").redrive();
            assertAll(handled.awaitSize(EVENTS.size()).events());
        }
    }
}
