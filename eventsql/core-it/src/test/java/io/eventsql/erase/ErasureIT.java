package io.eventsql.erase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Erasure;
import io.eventsql.ErasureSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.FailurePolicy;
import io.eventsql.InvalidInputException;
import io.eventsql.Storage;
import io.eventsql.Subscription;
import io.eventsql.UnknownStreamException;
import io.eventsql.fixture.DatabaseFiles;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
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
import org.junit.jupiter.api.Test;

/** Erasure in streams that store rows, and what does not depend on the storage: parked events, crashes, what files wait for. */
class ErasureIT extends ErasureContract {
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
        assertThat(parkedHeaders("email")).containsExactly("a@example.org", "a@example.org");

        assertThat(eventSql.erase(ErasureSpec.of(stream, "k1").withHeaders("email"))
                        .isDone())
                .isTrue();

        assertThat(parkedHeaders("email")).containsExactly("", "");
    }

    private List<String> parkedHeaders(String header) throws SQLException {
        return Sql.query(
                database(),
                "SELECT e.headers ->> ? FROM eventsql.parked_event e JOIN eventsql.consumer USING (consumer_id)"
                        + " JOIN eventsql.stream s USING (stream_id) WHERE s.name = ?",
                header,
                stream);
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
            assertThat(event.headers()).isEqualTo(Map.of("name", ""));
        });
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
            for (int steps = 0; !phases.containsAll(Set.of("files", "done")); steps++) {
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
                int files = steps == 0
                        ? 0
                        : inOutbox.find(connection, id).orElseThrow().files();
                Erasure erasure = other.resumeErasure(id);
                assertThat(erasure.isDone())
                        .as("after %s steps: %s", steps, erasure)
                        .isTrue();
                assertThat(readAll(stream)).allMatch(e -> e.isErased() != "other".equals(e.key()));
                // The steps of the outbox's files are alike: the first and the last suffice.
                steps += Math.max(0, files - 2);
                if (phase.equals("done") && !phases.contains("files")) {
                    steps -= 3; // the outbox had taken more steps before, because a table was locked
                }
            }
        }
        assertThat(phases).contains("outbox-sending", "events", "copies", "files");
        assertNoFileContains("secret-of-" + stream + "-k");
    }

    @Test
    void erase_amongUndecodableEvents_erasesThem_andLeavesTheOthers() throws SQLException {
        Random random = Seeds.random("erase_amongUndecodableEvents");
        assumeThat(storage()).as("changes single events by SQL").isEqualTo(Storage.ROWS);
        open(1);
        publish(40, 4, random);
        Sql.execute(
                database(),
                "UPDATE eventsql.events_" + stream + " SET headers = '\"" + name("k1")
                        + "\"' WHERE key IN ('k0', 'k1')");
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
                                + " WHERE key = 'k0' AND erased_at IS NULL AND headers::text = '\"" + name("k1")
                                + "\"'"))
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

    /** A segment of an earlier release has statistics of its values: a rewrite replaces them. */
    @Test
    void erase_segmentHasStatisticsOfValues_replacesThem() throws SQLException {
        Random random = Seeds.random("erase_segmentHasStatistics");
        assumeThat(storage()).as("changes single events by SQL").isEqualTo(Storage.ROWS);
        open(1);
        publish(100, 4, random);
        List<String> segments = Sql.query(
                database(),
                "SELECT g.table_name FROM eventsql.segment g JOIN eventsql.stream s USING (stream_id) WHERE s.name = ?",
                stream);
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
        assertThat(eventSql.erasures())
                .filteredOn(e -> e.stream().equals(stream))
                .hasSize(1);
        assertThatThrownBy(() -> eventSql.resumeErasure(replaced.id()))
                .isInstanceOf(EventSqlException.class)
                .hasMessage("There is no erasure " + replaced.id());
        assertNoFileContains(mark("k1"));
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
