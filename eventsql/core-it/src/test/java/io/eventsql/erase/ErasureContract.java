package io.eventsql.erase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.Erasure;
import io.eventsql.ErasureSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.RetryPolicy;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.fixture.DatabaseFiles;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestStreams;
import java.sql.SQLException;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** What an erasure does to events and their copies, for either storage. */
abstract class ErasureContract extends ErasureFixture {
    static final RetryPolicy ONE_ATTEMPT = RetryPolicy.defaults().withMaxAttempts(1);

    @Test
    void erase_blanksValuesAndHeaders_keepsEverythingElse() throws SQLException {
        Random random = Seeds.random("erase_blanksValuesAndHeaders");
        open(2);
        publish(300, 7, random);
        eventSql.publisher().publish(stream, Event.tombstone("k3").withHeader("name", name("k3")));
        List<StoredEvent> before = readAll(stream);
        assertThat(cluster.dataSources())
                .anySatisfy(database -> assertThat(DatabaseFiles.containing(database, mark("k3")))
                        .isNotEmpty());

        Erasure erasure =
                eventSql.erase(ErasureSpec.of(stream, "k3").withHeaders("name").withStepEvents(30));

        assertThat(erasure.isDone()).as("%s", erasure).isTrue();
        long expected = before.stream().filter(e -> "k3".equals(e.key())).count();
        assertThat(erasure.erasedEvents()).isEqualTo(expected);
        List<StoredEvent> after = readAll(stream);
        assertThat(after).hasSameSizeAs(before);
        for (int i = 0; i < before.size(); i++) {
            StoredEvent old = before.get(i);
            StoredEvent now = after.get(i);
            assertThat(now.position()).isEqualTo(old.position());
            assertThat(now.key()).isEqualTo(old.key());
            assertThat(now.publishedAt()).isEqualTo(old.publishedAt());
            assertThat(now.isTombstone()).isEqualTo(old.isTombstone());
            boolean isOfKey = "k3".equals(old.key());
            boolean erased = isOfKey && !old.isTombstone();
            assertThat(now.isErased()).isEqualTo(erased);
            assertThat(now.value()).isEqualTo(erased ? new byte[0] : old.value());
            Map<String, String> headers = new HashMap<>(old.headers());
            if (isOfKey) {
                headers.put("name", "");
            }
            assertThat(now.headers()).isEqualTo(headers);
        }
        assertNoFileContains(mark("k3"));
        assertNoFileContains(name("k3"));
        assertThat(eventSql.erasures())
                .filteredOn(e -> e.stream().equals(stream))
                .hasSize(1);
        assertThat(eventSql.resumeErasure(erasure.id()).isDone()).isTrue();
    }

    @Test
    void handlers_receiveNoErasedEvent_offsetsAdvanceAndTheyAreCounted() {
        Random random = Seeds.random("handlers_receiveNoErasedEvent");
        open(1);
        publish(100, 5, random);
        eventSql.erase(stream, "k1");
        AtomicInteger erased = new AtomicInteger();
        ConsumerListener listener = new ConsumerListener() {
            @Override
            public void eventsErased(ConsumerPartition partition, int events) {
                erased.addAndGet(events);
            }
        };
        try (EventSql process =
                EventSql.builder(cluster.dataSources()).listener(listener).build()) {
            for (int keyConcurrency : new int[] {1, 4}) {
                erased.set(0);
                Handled handled = new Handled();
                ConsumerSpec spec =
                        ConsumerSpec.of(stream, "c" + keyConcurrency).withKeyConcurrency(keyConcurrency);
                try (Subscription member = process.subscribe(spec, handled::add)) {
                    await().untilAsserted(() -> assertThat(
                                    process.consumer(stream, spec.name()).state())
                            .isNotEmpty()
                            .allMatch(p -> p.lag() == 0));
                }
                assertThat(handled.events()).hasSize(80).noneMatch(e -> "k1".equals(e.key()));
                assertThat(erased).hasValue(20);
            }
            Handled batches = new Handled();
            try (Subscription member = process.subscribeBatch(ConsumerSpec.of(stream, "batches"), batches::addAll)) {
                batches.awaitSize(80);
            }
            assertThat(batches.events()).noneMatch(StoredEvent::isErased);
        }
    }

    @Test
    void erase_parkedAndDeadLettered_areErasedWithTheirErrors_andRedriveHandlesNone() throws SQLException {
        Random random = Seeds.random("erase_parkedAndDeadLettered");
        open(1);
        createDeadLetterStream();
        publish(30, 3, random);
        ConsumerSpec parking = ConsumerSpec.of(stream, "parking")
                .withRetry(ONE_ATTEMPT)
                .withCircuitBreaker(0)
                .withFailurePolicy(FailurePolicy.PARK_KEY);
        ConsumerSpec deadLetters = ConsumerSpec.of(stream, "dead")
                .withRetry(ONE_ATTEMPT)
                .withCircuitBreaker(0)
                .withFailurePolicy(FailurePolicy.DEAD_LETTER)
                .withDeadLetterStream(stream + "_dead");
        for (ConsumerSpec spec : List.of(parking, deadLetters)) {
            try (Subscription member = eventSql.subscribe(spec, event -> {
                throw new IllegalStateException("cannot handle " + event.text());
            })) {
                await().untilAsserted(() -> assertThat(
                                eventSql.consumer(stream, spec.name()).parkedEvents(100))
                        .hasSize(30));
            }
        }

        Erasure erasure = eventSql.erase(ErasureSpec.of(stream, "k1").withDeadLetterStreams(stream + "_dead"));

        assertThat(erasure.isDone()).as("%s", erasure).isTrue();
        assertThat(erasure.erasedEvents()).isEqualTo(4 * 10);
        assertNoFileContains(mark("k1"));
        assertThat(readAll(stream + "_dead")).hasSize(30).allSatisfy(event -> {
            assertThat(event.isErased()).isEqualTo("k1".equals(event.key()));
            assertThat(event.headers().get("eventsql-dead-letter-error").isEmpty())
                    .isEqualTo("k1".equals(event.key()));
        });
        for (ConsumerSpec spec : List.of(parking, deadLetters)) {
            Handled handled = new Handled();
            try (Subscription member = eventSql.subscribe(spec, handled::add)) {
                eventSql.consumer(stream, spec.name()).redrive();
                await().untilAsserted(() -> assertThat(
                                eventSql.consumer(stream, spec.name()).parkedEvents(100))
                        .isEmpty());
            }
            assertThat(handled.events()).hasSize(20).noneMatch(e -> "k1".equals(e.key()));
        }
    }

    /** Without the check in the transaction that stores the copy, the value that the member has fetched came back. */
    @Test
    void event_isErasedWhileItsHandlerFails_isNeitherParkedNorDeadLettered() throws Exception {
        for (FailurePolicy policy : List.of(FailurePolicy.PARK_KEY, FailurePolicy.DEAD_LETTER)) {
            open(1);
            createDeadLetterStream();
            eventSql.publisher().publish(stream, event("k1", new Random(1)));
            CountDownLatch handling = new CountDownLatch(1);
            CountDownLatch erased = new CountDownLatch(1);
            ConsumerSpec spec = ConsumerSpec.of(stream, "c")
                    .withRetry(ONE_ATTEMPT)
                    .withFailurePolicy(policy)
                    .withDeadLetterStream(stream + "_dead");
            try (Subscription member = eventSql.subscribe(spec, event -> {
                handling.countDown();
                erased.await();
                throw new IllegalStateException("cannot handle " + event.text());
            })) {
                handling.await();
                assertThat(eventSql.erase(stream, "k1").isDone()).isTrue();
                erased.countDown();
                await().untilAsserted(() ->
                        assertThat(eventSql.consumer(stream, "c").state()).allMatch(p -> p.lag() == 0));
            }
            assertThat(eventSql.consumer(stream, "c").parkedEvents(10)).isEmpty();
            assertThat(readAll(stream + "_dead")).isEmpty();
            assertThat(Sql.query(
                            database(),
                            "SELECT key FROM eventsql.parked_key JOIN eventsql.consumer USING (consumer_id)"
                                    + " JOIN eventsql.stream s USING (stream_id) WHERE s.name = ?",
                            stream))
                    .isEmpty();
            assertNoFileContains(mark("k1"));
        }
    }

    @Test
    void erase_whilePublishedAndConsumed_erasesWhatWasPublishedBefore_andNothingLaterOfOtherKeys() throws Exception {
        Random random = Seeds.random("erase_whilePublishedAndConsumed");
        open(1);
        publish(200, 4, random);
        Handled handled = new Handled();
        AtomicBoolean ended = new AtomicBoolean();
        try (ExecutorService threads = Executors.newSingleThreadExecutor();
                Subscription member = eventSql.subscribe(ConsumerSpec.of(stream, "c"), handled::add)) {
            Future<Integer> publishing = threads.submit(() -> {
                int published = 0;
                for (; !ended.get(); published++) {
                    eventSql.publisher().publish(stream, event("k" + published % 4, new Random(published)));
                }
                return published;
            });
            try {
                long before = readAll(stream).stream()
                        .filter(e -> "k2".equals(e.key()))
                        .count();
                Erasure erasure = eventSql.erase(
                        ErasureSpec.of(stream, "k2").withStepEvents(20).withPause(Duration.ZERO));
                assertThat(erasure.isErased()).as("%s", erasure).isTrue();
                assertThat(erasure.erasedEvents()).isGreaterThanOrEqualTo(before);
                EventPosition later = eventSql.publisher().publish(stream, event("k2", random));
                assertThat(eventSql.read(later, 1).getFirst().isErased()).isFalse();
            } finally {
                ended.set(true);
            }
            int published = publishing.get();
            List<StoredEvent> stored = readAll(stream);
            assertThat(stored).hasSize(200 + published + 1);
            assertThat(stored).allMatch(e -> !e.isErased() || "k2".equals(e.key()));
            await().atMost(Duration.ofSeconds(120))
                    .untilAsserted(() ->
                            assertThat(eventSql.consumer(stream, "c").state()).allMatch(p -> p.lag() == 0));
            Set<EventPosition> positions = new HashSet<>(handled.positions());
            assertThat(stored).allMatch(e -> e.isErased() || positions.contains(e.position()));
        }
    }

    /** ANALYZE keeps samples of columns in pg_statistic, whose files no erasure writes anew. */
    @Test
    void erase_tablesWereAnalyzed_statisticsHaveNoValue() throws SQLException {
        Random random = Seeds.random("erase_tablesWereAnalyzed");
        open(1);
        publish(100, 4, random);
        Sql.execute(
                database(),
                "INSERT INTO eventsql.consumer (stream_id, name) SELECT stream_id, 'c' FROM eventsql.stream WHERE name = '"
                        + stream + "'",
                "INSERT INTO eventsql.parked_event (consumer_id, partition, event_offset, key, value, published_at, error,"
                        + " attempts) SELECT (SELECT max(consumer_id) FROM eventsql.consumer), partition, event_offset, key,"
                        + " value, published_at, left(encode(value, 'escape'), 30), 1 FROM eventsql.events_" + stream);
        for (String table : Sql.query(
                database(),
                "SELECT c.oid::regclass FROM pg_class c WHERE c.relkind IN ('r', 'p')"
                        + " AND c.relnamespace = 'eventsql'::regnamespace"
                        + " AND (NOT starts_with(c.relname, 'events_') OR starts_with(c.relname, 'events_" + stream
                        + "_')"
                        + " OR c.relname = 'events_" + stream + "')")) {
            Sql.execute(database(), "ANALYZE " + table);
        }
        assertThat(eventSql.erase(stream, "k1").isDone()).isTrue();
        assertNoFileContains(mark("k1"));
    }

    /** The rows of the key that compaction has deleted remain in the file, although no statement finds them. */
    @Test
    void erase_eventsOfTheKeyWereDeleted_filesAreWrittenAnew() throws SQLException {
        Random random = Seeds.random("erase_eventsOfTheKeyWereDeleted");
        open(1);
        publish(100, 4, random);
        TestStreams.delete(database(), stream, "e.key = 'k1'");
        assertThat(eventSql.erase(stream, "k1").isDone()).isTrue();
        assertNoFileContains(mark("k1"));
    }

    @Test
    void erase_random_equalsModel() throws SQLException {
        Random random = Seeds.random("erase_random_equalsModel");
        open(2);
        Set<EventPosition> erased = new HashSet<>();
        for (int round = 0; round < 6; round++) {
            publish(random.nextInt(120), 1 + random.nextInt(6), random);
            String key = "k" + random.nextInt(6);
            readAll(stream).stream()
                    .filter(e -> key.equals(e.key()))
                    .map(StoredEvent::position)
                    .forEach(erased::add);
            Erasure erasure = eventSql.erase(ErasureSpec.of(stream, key)
                    .withStepEvents(1 + random.nextInt(60))
                    .withPause(Duration.ZERO));
            assertThat(erasure.isDone()).as("%s", erasure).isTrue();
            assertNoFileContains(mark(key));
            assertThat(readAll(stream)).allMatch(e -> e.isErased() == erased.contains(e.position()));
        }
    }
}
