package io.eventsql.erase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.Erasure;
import io.eventsql.ErasureSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.FailurePolicy;
import io.eventsql.InvalidInputException;
import io.eventsql.RetryPolicy;
import io.eventsql.Storage;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.UnknownStreamException;
import io.eventsql.fixture.DatabaseFiles;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import io.eventsql.internal.sql.ErasureTable;
import io.eventsql.internal.sql.OutboxErasureTable;
import io.eventsql.internal.sql.SqlSchema;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class ErasureIT extends ErasureFixture {
    private static final RetryPolicy ONE_ATTEMPT = RetryPolicy.defaults().withMaxAttempts(1);

    @Test
    void erase_blanksValuesAndHeaders_keepsEverythingElse() throws SQLException {
        Random random = Seeds.random("erase_blanksValuesAndHeaders");
        open(2);
        publish(500, 7, random);
        List<StoredEvent> before = readAll(stream);
        assertThat(DatabaseFiles.containing(database(), "secret-of-")).isNotEmpty();

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
            boolean erased = "k3".equals(old.key());
            assertThat(now.isErased()).isEqualTo(erased);
            assertThat(now.value()).isEqualTo(erased ? new byte[0] : old.value());
            assertThat(now.headers()).isEqualTo(erased ? Map.of("name", "", "type", "changed") : old.headers());
        }
        assertNoFileContains(mark("k3"));
        assertNoFileContains("name-of-k3-");
        assertThat(eventSql.erasures()).hasSize(1);
        assertThat(eventSql.resumeErasure(erasure.id()).isDone()).isTrue();
    }

    @Test
    void handlers_receiveNoErasedEvent_offsetsAdvanceAndTheyAreCounted() {
        Random random = Seeds.random("handlers_receiveNoErasedEvent");
        open(1);
        publish(300, 5, random);
        eventSql.erase(stream, "k1");
        for (int keyConcurrency : new int[] {1, 4}) {
            AtomicInteger erased = new AtomicInteger();
            EventSql process = EventSql.builder(cluster.dataSources())
                    .listener(new ConsumerListener() {
                        @Override
                        public void eventsErased(ConsumerPartition partition, int events) {
                            erased.addAndGet(events);
                        }
                    })
                    .build();
            Handled handled = new Handled();
            ConsumerSpec spec = ConsumerSpec.of(stream, "c" + keyConcurrency).withKeyConcurrency(keyConcurrency);
            try (process;
                    Subscription member = process.subscribe(spec, handled::add)) {
                await().untilAsserted(() -> assertThat(
                                process.consumer(stream, spec.name()).state())
                        .isNotEmpty()
                        .allMatch(p -> p.lag() == 0));
            }
            assertThat(handled.events()).hasSize(240).noneMatch(e -> "k1".equals(e.key()));
            assertThat(erased).hasValue(60);
        }
        Handled batches = new Handled();
        try (Subscription member = eventSql.subscribeBatch(ConsumerSpec.of(stream, "batches"), batches::addAll)) {
            batches.awaitSize(240);
        }
        assertThat(batches.events()).noneMatch(StoredEvent::isErased);
    }

    /** Returns a consumer of the stream that has parked this number of events. */
    private ConsumerSpec parkEvents(int count) {
        ConsumerSpec parking =
                ConsumerSpec.of(stream, "parking").withRetry(ONE_ATTEMPT).withFailurePolicy(FailurePolicy.PARK_KEY);
        try (Subscription member = eventSql.subscribe(parking, event -> {
            throw new IllegalStateException("on purpose");
        })) {
            await().untilAsserted(() -> assertThat(
                            eventSql.consumer(stream, "parking").parkedEvents(100))
                    .hasSize(count));
        }
        return parking;
    }

    /** The first erasure names no header, the second one does. */
    @Test
    void erase_againWithHeaders_thoseOfParkedEventsAreBlank() throws SQLException {
        open(1);
        eventSql.publisher().publish(stream, Event.ofText("k1", "secret").withHeader("email", "a@example.org"));
        eventSql.publisher().publish(stream, Event.tombstone("k1").withHeader("email", "a@example.org"));
        parkEvents(2);
        assertThat(eventSql.erase(ErasureSpec.of(stream, "k1")).isDone()).isTrue();
        assertThat(Sql.query(database(), "SELECT headers ->> 'email' FROM eventsql.parked_event"))
                .containsOnly("a@example.org");

        assertThat(eventSql.erase(ErasureSpec.of(stream, "k1").withHeaders("email"))
                        .isDone())
                .isTrue();

        assertThat(Sql.query(database(), "SELECT headers ->> 'email' FROM eventsql.parked_event"))
                .containsExactly("", "");
    }

    /** A tombstone has no value to erase, and its handler still has to delete what it knows of the key. */
    @Test
    void erase_parkedTombstones_areRedrivenAsTombstones() throws SQLException {
        open(1);
        eventSql.publisher().publish(stream, Event.ofText("k1", "secret"));
        eventSql.publisher().publish(stream, Event.tombstone("k1").withHeader("name", "x"));
        ConsumerSpec parking = parkEvents(2);

        Erasure erasure = eventSql.erase(ErasureSpec.of(stream, "k1").withHeaders("name"));

        assertThat(erasure.isDone()).as("%s", erasure).isTrue();
        Handled handled = new Handled();
        try (Subscription member = eventSql.subscribe(parking, handled::add)) {
            eventSql.consumer(stream, "parking").redrive();
            await().untilAsserted(() -> assertThat(
                            eventSql.consumer(stream, "parking").parkedEvents(100))
                    .isEmpty());
        }
        assertThat(handled.events()).hasSize(1).allSatisfy(event -> {
            assertThat(event.isTombstone()).isTrue();
            assertThat(event.headers()).isEqualTo(java.util.Map.of("name", ""));
        });
    }

    @Test
    void erase_parkedAndDeadLettered_areErasedWithTheirErrors_andRedriveHandlesNone() throws SQLException {
        Random random = Seeds.random("erase_parkedAndDeadLettered");
        open(1);
        publish(60, 3, random);
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
                        .hasSize(60));
            }
        }

        Erasure erasure = eventSql.erase(ErasureSpec.of(stream, "k1").withDeadLetterStreams(stream + "_dead"));

        assertThat(erasure.isDone()).as("%s", erasure).isTrue();
        assertThat(erasure.erasedEvents()).isEqualTo(4 * 20);
        assertNoFileContains(mark("k1"));
        assertThat(readAll(stream + "_dead")).hasSize(60).allSatisfy(event -> {
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
            assertThat(handled.events()).hasSize(40).noneMatch(e -> "k1".equals(e.key()));
        }
    }

    /** Without the check in the transaction that stores the copy, the value that the member has fetched came back. */
    @Test
    void event_isErasedWhileItsHandlerFails_isNeitherParkedNorDeadLettered() throws Exception {
        for (FailurePolicy policy : List.of(FailurePolicy.PARK_KEY, FailurePolicy.DEAD_LETTER)) {
            open(1);
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
            assertThat(Sql.queryLong(database(), "SELECT count(*) FROM eventsql.parked_key"))
                    .isZero();
            assertNoFileContains(mark("k1"));
            cluster.close();
        }
        open(1); // for the fixture to close
    }

    /** With processes that are killed: {@link ErasureCrashIT}. */
    @Test
    void crash_betweenAnyTwoSteps_anotherProcessContinues() throws SQLException {
        Random random = Seeds.random("crash_betweenAnyTwoSteps");
        open(1);
        ErasureTable erasures = new ErasureTable(new SqlSchema("eventsql"));
        OutboxErasureTable inOutbox = new OutboxErasureTable(new SqlSchema("eventsql"));
        Set<String> phases = new HashSet<>();
        try (EventSql other = EventSql.builder(cluster.dataSources()).build();
                Connection connection = database().getConnection()) {
            for (int steps = 0; !phases.contains("done"); steps++) {
                String key = "k" + steps;
                eventSql.publisher().publishAll(stream, List.of(event(key, random), event("other", random)));
                UUID id = UUID.randomUUID();
                erasures.begin(connection, id, stream, key, Set.of("name"), Set.of());
                String phase = "";
                for (int i = 0; i < steps; i++) { // then the process dies
                    if (i == 0) {
                        inOutbox.begin(connection, id, stream, key);
                    }
                    if (!inOutbox.find(connection, id).orElseThrow().isDone()) {
                        phase = "outbox-" + inOutbox.step(connection, id, 10).phase();
                    } else {
                        phase = erasures.step(connection, id, 100).phase();
                    }
                }
                phases.add(phase);
                Erasure erasure = other.resumeErasure(id);
                assertThat(erasure.isDone())
                        .as("after %s steps: %s", steps, erasure)
                        .isTrue();
                assertThat(readAll(stream)).allMatch(e -> e.isErased() != "other".equals(e.key()));
            }
        }
        assertThat(phases).contains("outbox-sending", "events", "copies", "files");
        assertNoFileContains("secret-of-k");
    }

    @Test
    void erase_whilePublishedAndConsumed_erasesWhatWasPublishedBefore_andNothingLaterOfOtherKeys() throws Exception {
        Random random = Seeds.random("erase_whilePublishedAndConsumed");
        open(2);
        publish(400, 4, random);
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
                Erasure erasure = eventSql.erase(ErasureSpec.of(stream, "k2").withStepEvents(20));
                assertThat(erasure.isErased()).as("%s", erasure).isTrue();
                assertThat(erasure.erasedEvents()).isGreaterThanOrEqualTo(before);
                EventPosition later = eventSql.publisher().publish(stream, event("k2", random));
                assertThat(eventSql.read(later, 1).getFirst().isErased()).isFalse();
            } finally {
                ended.set(true);
            }
            int published = publishing.get();
            List<StoredEvent> stored = readAll(stream);
            assertThat(stored).hasSize(400 + published + 1);
            assertThat(stored).allMatch(e -> !e.isErased() || "k2".equals(e.key()));
            await().atMost(Duration.ofSeconds(120))
                    .untilAsserted(() ->
                            assertThat(eventSql.consumer(stream, "c").state()).allMatch(p -> p.lag() == 0));
            Set<EventPosition> positions = new HashSet<>(handled.positions());
            assertThat(stored).allMatch(e -> e.isErased() || positions.contains(e.position()));
        }
    }

    @Test
    void erase_amongUndecodableEvents_erasesThem_andLeavesTheOthers() throws SQLException {
        Random random = Seeds.random("erase_amongUndecodableEvents");
        open(1);
        assumeThat(storage()).as("changes single events by SQL").isEqualTo(Storage.ROWS);
        publish(40, 4, random);
        Sql.execute(
                database(),
                "UPDATE eventsql.events_" + stream + " SET headers = '\"name-of-k1-\"' WHERE key IN ('k0', 'k1')");
        Erasure erasure = eventSql.erase(ErasureSpec.of(stream, "k1").withHeaders("name"));
        assertThat(erasure.isDone()).isTrue();
        assertThat(Sql.queryLong(
                        database(),
                        "SELECT count(*) FROM eventsql.events_" + stream
                                + " WHERE key = 'k1' AND erased_at IS NOT NULL AND value IS NULL AND headers IS NULL"))
                .isEqualTo(10);
        assertThat(Sql.queryLong(
                        database(),
                        "SELECT count(*) FROM eventsql.events_" + stream
                                + " WHERE key = 'k0' AND erased_at IS NULL AND headers::text = '\"name-of-k1-\"'"))
                .isEqualTo(10);
        assertNoFileContains(mark("k1"));
    }

    @Test
    void erase_readerHasAnOldSnapshot_waitsAndNamesIt() throws SQLException {
        open(1);
        publish(20, 2, new Random(1));
        Erasure erasure;
        try (Connection reader = database().getConnection()) {
            reader.setAutoCommit(false);
            reader.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            Sql.query(reader, "SELECT count(*) FROM eventsql.stream");
            erasure = eventSql.erase(ErasureSpec.of(stream, "k1").withTimeout(Duration.ZERO));
            assertThat(erasure.isErased()).isTrue();
            assertThat(erasure.isDone()).isFalse();
            assertThat(erasure.parts())
                    .extracting(Erasure.Part::waitingFor)
                    .anySatisfy(reason -> assertThat(reason).contains("the session with pid"));
            reader.rollback();
            reader.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        }
        assertThat(eventSql.resumeErasure(erasure.id()).isDone()).isTrue();
        assertNoFileContains(mark("k1"));
    }

    /** After a utility statement the session has no snapshot: nothing but its lock keeps a file from being written anew. */
    @Test
    void erase_idleTransactionHasReadASegment_waitsAndNamesItsTable() throws SQLException {
        open(1);
        publish(20, 2, new Random(1));
        Erasure erasure;
        try (Connection reader = database().getConnection()) {
            reader.setAutoCommit(false);
            try (Statement statement = reader.createStatement()) {
                statement.execute("SELECT count(*) FROM eventsql.events_" + stream);
                statement.execute("SET LOCAL lock_timeout = 0");
            }
            erasure = eventSql.erase(ErasureSpec.of(stream, "k1").withTimeout(Duration.ofMillis(500)));
            assertThat(erasure.isErased()).isTrue();
            assertThat(erasure.isDone()).isFalse();
            assertThat(erasure.parts())
                    .extracting(Erasure.Part::waitingFor)
                    .anySatisfy(reason -> assertThat(reason).contains("uses the table events_" + stream));
            publish(20, 2, new Random(1));
            reader.rollback();
        }
        assertThat(eventSql.resumeErasure(erasure.id()).isDone()).isTrue();
        assertThat(readAll(stream)).hasSize(40);
        assertThat(DatabaseFiles.containing(database(), mark("k1"))).isNotEmpty(); // of the later events
    }

    /**
     * The snapshot of the transaction that writes a file anew is as old as the oldest writing transaction of the server: the
     * file kept the erased rows, and the erasure was reported as done.
     */
    @Test
    void erase_transactionInAnotherDatabaseWrites_waitsAndNamesIt() throws SQLException {
        open(1);
        publish(20, 2, new Random(1));
        Erasure erasure;
        try (Connection writer = TestCluster.newDatabase().getConnection()) {
            writer.setAutoCommit(false);
            Sql.query(writer, "SELECT pg_current_xact_id()");
            String pid = Sql.query(writer, "SELECT pg_backend_pid()").getFirst();
            erasure = eventSql.erase(ErasureSpec.of(stream, "k1").withTimeout(Duration.ofMillis(500)));
            assertThat(erasure.isErased()).isTrue();
            assertThat(erasure.isDone()).isFalse();
            assertThat(erasure.parts())
                    .extracting(Erasure.Part::waitingFor)
                    .anySatisfy(reason -> assertThat(reason).startsWith("the session with pid " + pid));
            writer.rollback();
        }
        assertThat(eventSql.resumeErasure(erasure.id()).isDone()).isTrue();
        assertNoFileContains(mark("k1"));
    }

    /** ANALYZE keeps samples of columns in pg_statistic, whose files no erasure writes anew. */
    @Test
    void erase_tablesWereAnalyzed_statisticsHaveNoValue() throws SQLException {
        Random random = Seeds.random("erase_tablesWereAnalyzed");
        open(1);
        publish(200, 4, random);
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
                        + " AND c.relnamespace = 'eventsql'::regnamespace")) {
            Sql.execute(database(), "ANALYZE " + table);
        }
        assertThat(eventSql.erase(stream, "k1").isDone()).isTrue();
        assertNoFileContains(mark("k1"));
    }

    /** A segment of an earlier release has statistics of its values: a rewrite replaces them. */
    @Test
    void erase_segmentHasStatisticsOfValues_replacesThem() throws SQLException {
        Random random = Seeds.random("erase_segmentHasStatistics");
        open(1);
        assumeThat(storage()).as("changes single events by SQL").isEqualTo(Storage.ROWS);
        publish(100, 4, random);
        List<String> segments = Sql.query(database(), "SELECT table_name FROM eventsql.segment");
        for (String segment : segments) {
            Sql.execute(
                    database(),
                    "ALTER TABLE eventsql." + segment + " ALTER COLUMN value SET STATISTICS 100",
                    "ANALYZE eventsql." + segment);
        }
        String statistics = "SELECT tablename FROM pg_stats WHERE attname = 'value' AND"
                + " histogram_bounds::text LIKE '%' || encode('" + mark("k1") + "', 'hex') || '%'";
        assertThat(Sql.query(database(), statistics)).isNotEmpty();
        assertThat(eventSql.erase(stream, "k1").isDone()).isTrue();
        assertThat(Sql.query(database(), statistics)).isEmpty();
    }

    /** The rows of the key that compaction has deleted remain in the file, although no statement finds them. */
    @Test
    void erase_eventsOfTheKeyWereDeleted_filesAreWrittenAnew() throws SQLException {
        Random random = Seeds.random("erase_eventsOfTheKeyWereDeleted");
        open(1);
        publish(200, 4, random);
        TestStreams.delete(database(), stream, "e.key = 'k1'");
        assertThat(eventSql.erase(stream, "k1").isDone()).isTrue();
        assertNoFileContains(mark("k1"));
    }

    /** No scan reads a table that compaction has replaced, and drops a minute later. */
    @Test
    void erase_compactionHasReplacedATable_waitsUntilItIsDropped() throws SQLException {
        open(1);
        publish(20, 2, new Random(1));
        String replaced = "events_" + stream + "__p0_v99";
        Sql.execute(
                database(),
                "CREATE TABLE eventsql." + replaced + " AS SELECT * FROM eventsql.events_" + stream,
                "INSERT INTO eventsql.replaced_table VALUES ('" + replaced + "', now())");

        Erasure erasure = eventSql.erase(ErasureSpec.of(stream, "k1").withTimeout(Duration.ofMillis(100)));

        assertThat(erasure.isDone()).isFalse();
        assertThat(erasure.parts())
                .anySatisfy(part -> assertThat(part.waitingFor()).contains("compaction has replaced " + replaced));
        Sql.execute(database(), "DROP TABLE eventsql." + replaced, "DELETE FROM eventsql.replaced_table");
        assertThat(eventSql.resumeErasure(erasure.id()).isDone()).isTrue();
        assertNoFileContains(mark("k1"));
    }

    @Test
    void erase_laterCallReplacesIt_saysSo() throws SQLException {
        open(1);
        publish(20, 2, new Random(1));
        Erasure replaced;
        try (Connection reader = database().getConnection()) {
            reader.setAutoCommit(false);
            Sql.query(reader, "SELECT count(*) FROM eventsql.events_" + stream);
            replaced = eventSql.erase(ErasureSpec.of(stream, "k1").withTimeout(Duration.ZERO));
            reader.rollback();
        }
        assertThat(eventSql.erase(stream, "k1").isDone()).isTrue();
        assertThat(eventSql.erasures()).hasSize(1);
        assertThatThrownBy(() -> eventSql.resumeErasure(replaced.id()))
                .isInstanceOf(EventSqlException.class)
                .hasMessage("There is no erasure " + replaced.id());
        assertNoFileContains(mark("k1"));
    }

    @Test
    void erase_random_equalsModel() throws SQLException {
        Random random = Seeds.random("erase_random_equalsModel");
        open(2);
        Set<EventPosition> erased = new HashSet<>();
        for (int round = 0; round < 8; round++) {
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

    @Test
    void erase_invalidInput_isRejected() {
        open(1);
        assertThatThrownBy(() -> eventSql.erase("unknown", "k")).isInstanceOf(UnknownStreamException.class);
        assertThatThrownBy(() -> ErasureSpec.of(stream, "k").withStepEvents(0))
                .isInstanceOf(InvalidInputException.class)
                .hasMessageContaining("erasure.stepEvents must be between 1 and");
        assertThat(eventSql.erase(stream, "no such key").erasedEvents()).isZero();
    }
}
