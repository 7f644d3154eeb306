package io.eventsql.grow;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.EventHandler;
import io.eventsql.EventPosition;
import io.eventsql.FailurePolicy;
import io.eventsql.ParkedEvent;
import io.eventsql.RetryPolicy;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.fixture.ConsumerFixture;
import io.eventsql.fixture.Handled;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: keys that are parked when a stream grows hold back their own later events in every partition, and nothing else; what is parked
 * is redriven in order.
 */
@Timeout(120)
class ParkedKeysGrowthIT extends ConsumerFixture {
    private static final int KEYS = 40;

    private static ConsumerSpec parking(String stream) {
        return consumer(stream)
                .withFailurePolicy(FailurePolicy.PARK_KEY)
                .withRetry(RetryPolicy.defaults().withMaxAttempts(1));
    }

    /** Keys are parked before the growth, and by the giver after it: their later events in new partitions are parked, too. */
    @Test
    void grow_parkedKeys_laterEventsAreParkedUntilTheyAreRedriven() {
        String stream = newStream(1);
        publish(stream, 0, 40, KEYS);
        AtomicBoolean fails = new AtomicBoolean(true);
        Handled handled = new Handled();
        ConsumerSpec spec = parking(stream);
        try (Subscription member = eventSql.subscribe(spec, event -> {
            if (fails.get() && event.text().length() == 2 && Integer.parseInt(event.text()) % 2 == 0) {
                throw new IllegalStateException("fails");
            }
            handled.add(event);
        })) {
            awaitLag(stream, 0);
            publish(stream, 40, 80, KEYS); // the same keys fail again, some of them after the growth
            eventSql.grow(stream, 4);
            publish(stream, 100, 200, KEYS); // these would not fail
            awaitLag(stream, 0);
            List<Integer> parkedIn = eventSql.consumer(stream, "c").parkedEvents(200).stream()
                    .map(parked -> parked.event().partition())
                    .distinct()
                    .toList();
            assertThat(parkedIn).contains(0, 1, 2, 3);
            assertOrderOfKeys(handled.events());
            fails.set(false);
            eventSql.consumer(stream, "c").redrive();
            handled.awaitSize(180);
            await().atMost(Duration.ofSeconds(60))
                    .untilAsserted(() -> assertThat(state(stream)).allMatch(p -> p.parkedKeys() == 0));
            publish(stream, 200, 240, KEYS);
            handled.awaitSize(220);
        }
        assertThat(handled.events()).hasSize(220);
        assertOrderOfKeys(handled.events());
    }

    /**
     * Keys that are parked in the first partition move to the second one and on, before a member has the second one, which may have no
     * event.
     */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void grow_twiceWhileKeysAreParked_eventsInBetweenAreParked(boolean hasEventsInBetween) {
        String stream = newStream(1);
        publish(stream, 0, 40, KEYS);
        AtomicBoolean fails = new AtomicBoolean(true);
        Handled handled = new Handled();
        EventHandler handler = event -> {
            int number = Integer.parseInt(event.text());
            if (fails.get() && number < 40 && number % 2 == 0) {
                throw new IllegalStateException("fails");
            }
            handled.add(event);
        };
        ConsumerSpec spec = parking(stream);
        try (Subscription member = eventSql.subscribe(spec, handler)) {
            awaitLag(stream, 0);
        }
        eventSql.grow(stream, 2);
        if (hasEventsInBetween) {
            publish(stream, 40, 80, KEYS);
        }
        eventSql.grow(stream, 4);
        publish(stream, hasEventsInBetween ? 80 : 40, 120, KEYS);
        try (Subscription member = eventSql.subscribe(spec, handler)) {
            awaitLag(stream, 0);
            assertThat(handled.texts()).as("events of parked keys").noneMatch(text -> Integer.parseInt(text) % 2 == 0);
            List<StoredEvent> parked = eventSql.consumer(stream, "c").parkedEvents(200).stream()
                    .map(ParkedEvent::event)
                    .toList();
            assertThat(partitionsOfKeys(parked).values())
                    .as("keys that have moved twice")
                    .anyMatch(of -> of.size() == (hasEventsInBetween ? 3 : 2) && of.contains(3));
            fails.set(false);
            eventSql.consumer(stream, "c").redrive();
            handled.awaitSize(120);
            await().atMost(Duration.ofSeconds(60))
                    .untilAsserted(() -> assertThat(state(stream)).allMatch(p -> p.parkedKeys() == 0));
        }
        assertHandledInOrder(handled, 0, 120);
    }

    /** Also keys without any event in their new partition, whose next one is handled normally. */
    @Test
    void drop_parkedEventsOfTheGiver_keysContinueInTheirNewPartitions() {
        String stream = newStream(1);
        publish(stream, 0, 40, KEYS);
        Handled handled = new Handled();
        ConsumerSpec spec = parking(stream);
        try (Subscription member = eventSql.subscribe(spec, event -> {
            int number = Integer.parseInt(event.text());
            if (number < 40 && number % 2 == 0) {
                throw new IllegalStateException("fails");
            }
            handled.add(event);
        })) {
            awaitLag(stream, 0);
            eventSql.grow(stream, 2);
            publish(stream, 40, 60, KEYS);
            eventSql.grow(stream, 4);
            awaitLag(stream, 0);
            List<EventPosition> failed = eventSql.consumer(stream, "c").parkedEvents(200).stream()
                    .map(ParkedEvent::event)
                    .filter(event -> Integer.parseInt(event.text()) < 40)
                    .map(StoredEvent::position)
                    .toList();
            assertThat(eventSql.consumer(stream, "c").drop(failed)).isEqualTo(20);
            await().atMost(Duration.ofSeconds(60))
                    .untilAsserted(
                            () -> assertThat(eventSql.consumer(stream, "c").parkedEvents(200))
                                    .as("later ones in the partition of those that were dropped")
                                    .isNotEmpty()
                                    .allMatch(parked -> parked.event().partition() == 0));
            eventSql.consumer(stream, "c")
                    .redrive(eventSql.consumer(stream, "c").parkedEvents(200).stream()
                            .map(parked -> parked.event().position())
                            .toList());
            await().atMost(Duration.ofSeconds(60))
                    .untilAsserted(() -> assertThat(state(stream)).allMatch(p -> p.parkedKeys() == 0));
            publish(stream, 60, 120, KEYS);
            handled.awaitSize(100);
        }
        assertThat(handled.texts()).hasSize(100);
        assertOrderOfKeys(handled.events());
    }
}
