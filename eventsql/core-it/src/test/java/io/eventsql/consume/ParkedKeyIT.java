package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.ParkedEvent;
import io.eventsql.RetryPolicy;
import io.eventsql.StoredEvent;
import io.eventsql.fixture.ConsumerFixture;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Parked keys: of any length, and found again by their events if their own row is missing. */
class ParkedKeyIT extends ConsumerFixture {
    private static final int KEY_BYTES = 8_192;

    private final Set<String> failing = ConcurrentHashMap.newKeySet();
    private Handled handled = new Handled();

    @BeforeEach
    void forget() {
        failing.clear();
        handled = new Handled();
    }

    private static ConsumerSpec parking(String stream) {
        return consumer(stream)
                .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                .withFailurePolicy(FailurePolicy.PARK_KEY);
    }

    private void handle(StoredEvent event) {
        if (failing.contains(event.text())) {
            throw new IllegalStateException("cannot handle " + event.text());
        }
        handled.add(event);
    }

    private void awaitParked(EventSql process, String stream, int events) {
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(process.consumer(stream, "c").parkedEvents(100))
                        .hasSize(events));
    }

    private static List<String> parked(EventSql process, String stream) {
        return process.consumer(stream, "c").parkedEvents(100).stream()
                .map(ParkedEvent::event)
                .map(StoredEvent::text)
                .toList();
    }

    /** Returns a key that no index entry could hold, not even compressed. */
    private static String randomKey(Random random) {
        return random.ints(KEY_BYTES, 0x20, 0x7f)
                .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append)
                .toString();
    }

    @Test
    void parkKey_longestKeys_areParkedAndRedrivenInOrder() {
        Random random = Seeds.random("ParkedKeyIT");
        String stream = newStream(1);
        List<String> keys = Stream.generate(() -> randomKey(random)).limit(3).toList();
        List<Event> events = new ArrayList<>();
        for (int round = 0; round < 3; round++) {
            for (int key = 0; key < keys.size(); key++) {
                events.add(Event.ofText(keys.get(key), key + "." + round));
            }
        }
        failing.addAll(List.of("0.0", "2.1"));
        try (EventSql process = cluster.open(settings -> settings.maxKeyBytes(KEY_BYTES))) {
            process.subscribe(parking(stream), this::handle);
            process.publisher().publishAll(stream, events);
            awaitLag(stream, 0);
            assertThat(parked(process, stream)).containsExactly("0.0", "0.1", "2.1", "0.2", "2.2");
            assertThat(state(stream).getFirst().parkedKeys()).isEqualTo(2);
            failing.clear();
            assertThat(process.consumer(stream, "c").redrive()).isEqualTo(5);
            awaitParked(process, stream, 0);
            await().until(() -> state(stream).getFirst().parkedKeys() == 0);
        }
        assertThat(handled.texts()).containsExactly("1.0", "2.0", "1.1", "1.2", "0.0", "0.1", "2.1", "0.2", "2.2");
    }

    @Test
    void parkedEvents_rowOfKeyMissing_keyIsStillParkedAndRedriven() throws SQLException {
        String stream = newStream(1);
        failing.add("a1");
        try (EventSql process = cluster.open()) {
            process.subscribe(parking(stream), this::handle);
            publishKeys(stream, "a", "b", "a");
            awaitLag(stream, 0);
            assertThat(parked(process, stream)).containsExactly("a1", "a2");
        }
        Sql.execute(cluster.dataSources().getFirst(), "DELETE FROM eventsql.parked_key"); // a fault's trace
        failing.clear();
        try (EventSql process = cluster.open()) {
            process.subscribe(parking(stream), this::handle);
            eventSql.publisher().publish(stream, Event.ofText("a", "a3"));
            awaitLag(stream, 0);
            assertThat(parked(process, stream)).containsExactly("a1", "a2", "a3");
            assertThat(process.consumer(stream, "c").redrive()).isEqualTo(3);
            awaitParked(process, stream, 0);
        }
        assertThat(handled.texts()).containsExactly("b1", "a1", "a2", "a3");
    }

    @Test
    void redrive_rowOfKeyMissingWithoutMember_findsItsEvents() throws SQLException {
        String stream = newStream(1);
        failing.add("a1");
        try (EventSql process = cluster.open()) {
            process.subscribe(parking(stream), this::handle);
            publishKeys(stream, "a", "a");
            awaitLag(stream, 0);
        }
        Sql.execute(cluster.dataSources().getFirst(), "DELETE FROM eventsql.parked_key");
        assertThat(eventSql.consumer(stream, "c").redrive()).isEqualTo(2);
        failing.clear();
        try (EventSql process = cluster.open()) {
            process.subscribe(parking(stream), this::handle);
            awaitParked(process, stream, 0);
        }
        assertThat(handled.texts()).containsExactly("a1", "a2");
    }

    @Test
    void parkFollowing_rowOfKeyMissing_isInserted() throws SQLException {
        String stream = newStream(1);
        failing.add("a1");
        try (EventSql process = cluster.open()) {
            process.subscribe(parking(stream), this::handle);
            publishKeys(stream, "a");
            awaitLag(stream, 0);
            Sql.execute(cluster.dataSources().getFirst(), "DELETE FROM eventsql.parked_key");
            eventSql.publisher().publish(stream, Event.ofText("a", "a2"));
            awaitLag(stream, 0);
            assertThat(state(stream).getFirst().parkedKeys()).isEqualTo(1);
        }
    }

    /** The key has no event any more that could be redriven: it must not stay parked. */
    @Test
    void drop_whileTheEventIsRedriven_theKeyIsHandledAgain() throws Exception {
        String stream = newStream(1);
        CountDownLatch redriven = new CountDownLatch(1);
        CountDownLatch resume = new CountDownLatch(1);
        AtomicInteger calls = new AtomicInteger();
        try (EventSql process = cluster.open()) {
            process.subscribe(parking(stream), event -> {
                if (event.text().equals("bad")) {
                    if (calls.incrementAndGet() == 2) {
                        redriven.countDown();
                        resume.await();
                    }
                    throw new IllegalStateException("cannot handle it");
                }
                handled.add(event);
            });
            process.publisher().publish(stream, Event.ofText("k", "bad"));
            awaitParked(process, stream, 1);
            process.consumer(stream, "c").redrive();
            redriven.await();
            ParkedEvent parked = process.consumer(stream, "c").parkedEvents(1).getFirst();
            assertThat(process.consumer(stream, "c").drop(List.of(parked.event().position())))
                    .isEqualTo(1L);
            resume.countDown();
            await().until(() -> process.consumer(stream, "c").state().getFirst().parkedKeys() == 0);
            process.publisher().publish(stream, Event.ofText("k", "good"));
            handled.awaitSize(1);
        }
        assertThat(handled.texts()).containsExactly("good");
    }
}
