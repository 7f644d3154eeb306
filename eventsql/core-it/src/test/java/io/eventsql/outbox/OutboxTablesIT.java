package io.eventsql.outbox;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.InvalidInputException;
import io.eventsql.Settings;
import io.eventsql.ShardIdentityException;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TablesTemplate;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.load.OutboxLoad;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Goal: the tables of an outbox stay small and lose no event while old snapshots, long writers and prepared transactions
 * are open in the database. An event that can never be appended does not block the others.
 *
 * <p>Method: many tables' worth of events pass through the outbox while such a transaction is open; then the sizes of the
 * tables and the stored events are checked.
 */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(120)
class OutboxTablesIT {
    private static final String RING_BYTES = "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c"
            + " WHERE c.relname ~ '^outbox_([0-9]|transfer)$' AND c.relkind = 'r'";
    private static final String RING_BYTES_WITHOUT_LARGEST = RING_BYTES.replace(
            "sum(pg_total_relation_size(c.oid))",
            "sum(pg_total_relation_size(c.oid)) - max(pg_total_relation_size(c.oid))");
    private static final byte[] VALUE = "x".repeat(400).getBytes(StandardCharsets.US_ASCII);

    private EventsDb eventsDb;
    private int databases;
    private List<HikariDataSource> shards;
    private HikariDataSource database;
    private EventSql eventSql;
    private String stream;

    @BeforeAll
    void open() {
        eventsDb = EmbeddedEventsDb.builder()
                .setting("max_prepared_transactions", "10")
                .start();
        shards = List.of(pool(), pool());
        database = shards.getFirst();
        eventSql = open(shards);
    }

    @AfterAll
    void close() {
        eventSql.close();
        shards.forEach(HikariDataSource::close);
        eventsDb.close();
    }

    @BeforeEach
    void createStream() throws SQLException {
        stream = TestStreams.newName();
        eventSql.createStream(TestStreams.of(stream).withPartitions(1));
        Sql.execute(database, "DELETE FROM eventsql.outbox_refused");
    }

    /** Returns a pool of a new database with the tables of a shard. */
    private HikariDataSource pool() {
        return pool(TablesTemplate.copy(eventsDb, "outbox_" + ++databases));
    }

    private HikariDataSource emptyPool() {
        return pool(eventsDb.createDatabase("outbox_" + ++databases));
    }

    private HikariDataSource pool(DataSource database) {
        return Pools.pool(eventsDb, ((PGSimpleDataSource) database).getUrl());
    }

    private static EventSql open(List<HikariDataSource> shards, DataSource... outboxes) {
        return EventSql.builder(shards)
                .outbox(outboxes)
                .settings(Settings.builder().outboxLease(Duration.ofSeconds(1)).build())
                .build();
    }

    private Connection begin() throws SQLException {
        Connection transaction = database.getConnection();
        transaction.setAutoCommit(false);
        return transaction;
    }

    private void publish(String... texts) throws SQLException {
        try (Connection transaction = begin()) {
            for (String text : texts) {
                eventSql.outbox().publish(transaction, stream, Event.ofText(text));
            }
            transaction.commit();
        }
        eventSql.outbox().committed();
    }

    /** Publishes enough events to fill many tables, several times what they may take up; returns their number. */
    private int publishMuch() throws SQLException {
        int calls = 24;
        int eventsPerCall = 500;
        for (int call = 0; call < calls; call++) {
            try (Connection transaction = begin()) {
                eventSql.outbox()
                        .publishAll(
                                transaction,
                                stream,
                                IntStream.range(0, eventsPerCall)
                                        .mapToObj(i -> Event.of("key" + i % 20, VALUE))
                                        .toList());
                transaction.commit();
            }
        }
        return calls * eventsPerCall;
    }

    private long stored() throws SQLException {
        long stored = 0;
        for (DataSource shard : shards) {
            stored += Sql.queryLong(shard, "SELECT count(*) FROM eventsql.events_" + stream);
        }
        return stored;
    }

    private void awaitStored(long expected) {
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(stored()).isEqualTo(expected));
    }

    private List<String> texts() throws SQLException {
        List<String> texts = new ArrayList<>();
        for (DataSource shard : shards) {
            texts.addAll(Sql.query(
                    shard,
                    "SELECT convert_from(value, 'UTF8') FROM eventsql.events_" + stream
                            + " ORDER BY partition, event_offset"));
        }
        return texts;
    }

    private void awaitTexts(String... expected) {
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(texts()).containsExactlyInAnyOrder(expected));
    }

    /** Waits until the tables are far smaller than the events that passed through them. */
    private void awaitSmallTables(String bytes) {
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(Sql.queryLong(database, bytes)).isLessThan(3L << 20));
    }

    @Test
    void ring_oldSnapshotOpen_staysSmall() throws SQLException {
        try (Connection reader = begin()) {
            reader.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            Sql.query(reader, "SELECT 1");
            int published = publishMuch();
            awaitStored(published);
            awaitSmallTables(RING_BYTES);
            reader.rollback();
        }
    }

    /** Events for a shard that is blocked stay in the transfer table, while the others pass through it. */
    @Test
    void transfer_oldSnapshotOpenAndShardBlocked_staysSmallAndKeepsEvents() throws SQLException {
        try (HikariDataSource standalone = emptyPool();
                EventSql other = open(shards, standalone);
                Connection reader = standalone.getConnection()) {
            reader.setAutoCommit(false);
            reader.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            Sql.query(reader, "SELECT 1");
            DataSource blocked = shards.get(1);
            long published = 0;
            try (Connection blocker = blocked.getConnection()) {
                blocker.setAutoCommit(false);
                for (int call = 0; call < 30; call++) {
                    if (call == 29) {
                        awaitStored(published);
                        Sql.query(blocker, "SELECT 1 FROM eventsql.stream_partition FOR UPDATE");
                    }
                    try (Connection transaction = standalone.getConnection()) {
                        transaction.setAutoCommit(false);
                        List<Event> events = IntStream.range(0, 300)
                                .mapToObj(i -> Event.of("key" + i, VALUE))
                                .toList();
                        other.outbox().publishAll(transaction, stream, events);
                        transaction.commit();
                        published += events.size();
                    }
                }
                await().atMost(Duration.ofSeconds(120))
                        .untilAsserted(
                                () -> assertThat(Sql.queryLong(standalone, "SELECT count(*) FROM eventsql.outbox"))
                                        .isZero());
                await().atMost(Duration.ofSeconds(120))
                        .untilAsserted(() -> assertThat(Sql.queryLong(standalone, RING_BYTES))
                                .isLessThan(3L << 20));
                assertThat(Sql.queryLong(standalone, "SELECT count(*) FROM eventsql.outbox_transfer WHERE shard = 1"))
                        .isPositive();
                blocker.rollback();
            }
            awaitStored(published);
            reader.rollback();
        }
    }

    @Test
    void ring_longWriterOpen_holdsOneTableWhileOthersAreReused() throws SQLException {
        try (Connection writer = begin();
                Connection stale = database.getConnection()) {
            stale.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            stale.setAutoCommit(false);
            Sql.query(
                    stale,
                    "SELECT last_value FROM eventsql.outbox_ring"); // this snapshot predates the emptying of tables
            eventSql.outbox().publish(writer, stream, Event.ofText("key", "long"));
            int published = publishMuch();
            awaitStored(published);
            awaitSmallTables(RING_BYTES_WITHOUT_LARGEST); // the writer holds the largest
            eventSql.outbox().publish(stale, stream, Event.ofText("key", "stale"));
            stale.commit();
            awaitStored(published + 1);
            writer.commit();
            awaitStored(published + 2);
        }
    }

    @Test
    void publish_inPreparedTransaction_isDeliveredAfterCommitPrepared() throws SQLException {
        try (Connection transaction = begin()) {
            eventSql.outbox().publish(transaction, stream, Event.ofText("kept"));
            Sql.query(transaction, "SELECT 1");
            execute(transaction, "PREPARE TRANSACTION 'kept'");
            eventSql.outbox().publish(transaction, stream, Event.ofText("dropped"));
            execute(transaction, "PREPARE TRANSACTION 'dropped'");
        }
        publish("while prepared");
        awaitTexts("while prepared");
        int published = publishMuch();
        awaitStored(published + 1);
        awaitSmallTables(RING_BYTES_WITHOUT_LARGEST);

        Sql.execute(database, "ROLLBACK PREPARED 'dropped'", "COMMIT PREPARED 'kept'");
        awaitStored(published + 2);
        assertThat(texts()).contains("kept", "while prepared").doesNotContain("dropped");
    }

    private static void execute(Connection connection, String sql) throws SQLException {
        try (var statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    /** Some events violate a constraint or trigger that the user added to the stream's table, in the shard of the outbox. */
    @Test
    void relay_constraintOrTriggerRejectsEvents_keepsThemVisiblyAndContinues() throws SQLException {
        assumeThat(TestStreams.areBlocks()).as("a block has no column of keys").isFalse();
        String events = "eventsql.events_" + stream;
        Sql.execute(
                database,
                "ALTER TABLE " + events + " ADD CONSTRAINT no_bad_keys CHECK (key !~ '^bad')",
                "CREATE FUNCTION no_worse_keys() RETURNS trigger LANGUAGE plpgsql AS"
                        + " 'BEGIN IF NEW.key ~ ''^worse'' THEN RAISE ''a worse key''; END IF; RETURN NEW; END'",
                "CREATE TRIGGER no_worse_keys BEFORE INSERT ON " + events
                        + " FOR EACH ROW EXECUTE FUNCTION no_worse_keys()");
        // Enough keys for both shards that some rejected ones certainly belong to this shard.
        List<Event> all = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            all.add(Event.ofText((i % 50 == 7 ? "bad" : i % 50 == 8 ? "worse" : "good") + i, "" + i));
        }
        try (Connection transaction = begin()) {
            eventSql.outbox().publishAll(transaction, stream, all);
            transaction.commit();
        }
        OutboxLoad.awaitRelayed(eventSql.outbox());
        List<String> refused =
                Sql.query(database, "SELECT key || ': ' || error FROM eventsql.outbox_refused ORDER BY refused_id");
        assertThat(refused).isNotEmpty().allMatch(line -> line.matches("(?s)bad.*no_bad_keys.*|worse.*a worse key.*"));
        assertThat(stored()).isEqualTo(300 - refused.size());
        assertThat(Sql.queryLong(database, "SELECT count(*) FROM " + events + " WHERE key !~ '^good'"))
                .isZero();
        assertThat(eventSql.outbox().backlogs().getFirst().refusedEvents()).isEqualTo(refused.size());

        // An operator puts the events back once the cause is fixed; then they are relayed.
        Sql.execute(
                database,
                "ALTER TABLE " + events + " DROP CONSTRAINT no_bad_keys",
                "DROP TRIGGER no_worse_keys ON " + events);
        Sql.execute(
                database,
                "WITH again AS (DELETE FROM eventsql.outbox_refused RETURNING stream, key, value, headers)"
                        + " INSERT INTO eventsql.outbox (ring, stream, key, value, headers, routing_hash)"
                        + " SELECT 0, stream, key, value, headers, 0 FROM again");
        awaitStored(300);
    }

    @Test
    void relay_streamWasDeleted_keepsItsEventsVisiblyAndContinues() throws SQLException {
        eventSql.createStream(TestStreams.of("short_lived").withPartitions(1));
        try (Connection transaction = begin()) {
            // A relayed event makes the stream known to this process.
            eventSql.outbox().publish(transaction, "short_lived", Event.ofText("first"));
            transaction.commit();
        }
        OutboxLoad.awaitRelayed(eventSql.outbox());
        try (Connection transaction = begin()) {
            for (int i = 0; i < 10; i++) {
                String key = "key" + i;
                eventSql.outbox()
                        .publish(
                                transaction,
                                "short_lived",
                                Event.ofText(key, "lost").withHeader("a", "b"));
                eventSql.outbox().publish(transaction, stream, Event.ofText(key, "good"));
            }
            eventSql.outbox().publish(transaction, "short_lived", Event.ofText("lost"));
            for (DataSource shard : shards) {
                Sql.execute(
                        shard,
                        "DELETE FROM eventsql.producer_batch WHERE stream_id ="
                                + " (SELECT stream_id FROM eventsql.stream WHERE name = 'short_lived')",
                        "DELETE FROM eventsql.stream WHERE name = 'short_lived'",
                        "DROP TABLE " + TestStreams.table("short_lived") + " CASCADE");
            }
            transaction.commit();
        }
        awaitTexts(Collections.nCopies(10, "good").toArray(String[]::new));
        OutboxLoad.awaitRelayed(eventSql.outbox());
        assertThat(
                        Sql.query(
                                database,
                                "SELECT error || ' ' || coalesce(headers ->> 'a', '-') FROM eventsql.outbox_refused ORDER BY key"))
                .hasSize(11)
                .allMatch(error -> error.startsWith("there is no stream short_lived"));
    }

    @Test
    void publish_roleMayOnlyPublish_isDelivered() throws SQLException {
        String role = "publisher_" + databases;
        Sql.execute(eventsDb.adminDataSource(), "CREATE ROLE " + role + " LOGIN PASSWORD 'test'");
        Sql.execute(
                database,
                "GRANT USAGE ON SCHEMA eventsql TO " + role,
                "GRANT INSERT ON eventsql.outbox TO " + role,
                "GRANT SELECT ON eventsql.outbox_ring TO " + role,
                "GRANT USAGE ON SEQUENCE eventsql.outbox_id TO " + role);
        try (HikariDataSource restricted = Pools.pool(database.getJdbcUrl(), role, "test", config -> {});
                Connection transaction = restricted.getConnection()) {
            transaction.setAutoCommit(false);
            eventSql.outbox().publish(transaction, stream, Event.ofText("one"));
            eventSql.outbox().publishAll(transaction, stream, List.of(Event.ofText("two")));
            transaction.commit();
        }
        awaitTexts("one", "two");
    }

    @Test
    void open_outboxOfAnotherCluster_isRejected() throws SQLException {
        try (HikariDataSource standalone = emptyPool();
                HikariDataSource otherShard = pool()) {
            open(shards, standalone).close();
            assertThat(Sql.query(standalone, "SELECT version FROM eventsql.schema_version ORDER BY 1"))
                    .containsExactly("1", "14", "15", "22", "40", "42", "44");
            for (DataSource wrong : List.of(standalone, database)) {
                assertThatExceptionOfType(ShardIdentityException.class)
                        .isThrownBy(() -> open(List.of(otherShard), wrong).close())
                        .withMessageContaining("belongs to cluster");
            }
        }
    }

    @Test
    void open_standaloneOutboxAsShardOfAnotherCluster_isRejected() throws SQLException {
        try (HikariDataSource standalone = emptyPool()) {
            open(shards, standalone).close();
            assertThatExceptionOfType(ShardIdentityException.class)
                    .isThrownBy(() -> open(List.of(standalone)).close())
                    .withMessageContaining("belongs to cluster");
            assertThat(Sql.query(standalone, "SELECT version FROM eventsql.schema_version ORDER BY 1"))
                    .containsExactly(
                            "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17",
                            "18", "19", "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31", "32",
                            "33", "34", "35", "36", "37", "38", "39", "40", "41", "42", "43", "44", "45", "46", "47",
                            "48");
        }
    }

    /** A second pool of a shard's database: its outbox is the shard's. */
    @Test
    void open_outboxIsAnotherPoolOfAShard_isServedOnce() throws SQLException {
        String nextNumber = "SELECT nextval('eventsql.outbox_transfer_number')";
        long before = Sql.queryLong(database, nextNumber);
        try (HikariDataSource again = Pools.pool(eventsDb, database.getJdbcUrl());
                EventSql other = open(shards, again)) {
            assertThat(other.outbox().backlogs()).hasSize(2);
            assertThat(other.outbox().names())
                    .hasSize(2)
                    .allSatisfy(name ->
                            assertThat(other.outbox().backlog(name).events()).isZero());
            assertThatExceptionOfType(InvalidInputException.class)
                    .isThrownBy(() -> other.outbox().backlog("outbox0"))
                    .withMessageContaining("must be one of");
            try (Connection transaction = again.getConnection()) {
                transaction.setAutoCommit(false);
                other.outbox().publish(transaction, stream, Event.ofText("x"));
                transaction.commit();
            }
            awaitTexts("x");
            assertThat(Sql.queryLong(database, nextNumber))
                    .as("nothing was transferred")
                    .isEqualTo(before + 1);
        }
    }

    @Test
    void relay_producersOfOutboxes_areRegistered() throws SQLException {
        try (Connection transaction = begin()) {
            eventSql.outbox()
                    .publishAll(
                            transaction,
                            stream,
                            IntStream.range(0, 50)
                                    .mapToObj(i -> Event.ofText("key" + i, "x"))
                                    .toList());
            transaction.commit();
        }
        awaitStored(50);
        assertThat(Sql.queryLong(
                        shards.get(1),
                        "SELECT count(*) FROM eventsql.producer_batch JOIN eventsql.outbox_producer USING (producer_id)"
                                + " JOIN eventsql.stream s USING (stream_id) WHERE s.name = '" + stream + "'"))
                .isPositive();
    }
}
