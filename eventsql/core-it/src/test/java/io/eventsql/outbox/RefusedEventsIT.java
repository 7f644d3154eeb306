package io.eventsql.outbox;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.SwitchableDataSource;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: an event that a database rejects, for whatever reason, is refused and delays no other event; what is not a
 * rejection refuses none. The reasons are triggers, constraints, indexes and time limits that a user has added to the
 * tables of a stream or of the outbox.
 *
 * <p>Method: two shards, and a stream of one partition for each test; the outbox is that of shard 0. Events whose keys begin with
 * {@code bad} are rejected by shard 0, to which the relay appends, or by shard 1, to which the outbox transfers.
 */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(120)
class RefusedEventsIT {
    private static final String BAD = TestStreams.anyNew("e.key LIKE 'bad%'");
    private static final int BAD_EVERY = 7;
    private static final String BLOCKED = "datname = current_database() AND wait_event_type = 'Lock'";
    /** Counts attempts, which are rolled back. */
    private static final String NEW_SEQUENCE = "DROP SEQUENCE IF EXISTS attempt; CREATE SEQUENCE attempt";
    /** Drops the triggers that tests have added to tables of the library. Those of a stream do not matter to other tests. */
    private static final String DROP_TRIGGERS = """
            DO $$
            DECLARE
                added record;
            BEGIN
                FOR added IN
                    SELECT t.tgname AS name, t.tgrelid::regclass AS relation
                    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
                    WHERE t.tgname IN ('users_trigger', 'full_table', 'no_truncate') AND t.tgparentid = 0
                      AND c.relname !~ '^events_'
                LOOP
                    EXECUTE format('DROP TRIGGER %I ON %s', added.name, added.relation);
                END LOOP;
            END $$""";

    private final List<HikariDataSource> pools = new ArrayList<>();
    private TestCluster cluster;
    private DataSource database;
    private EventSql eventSql;
    private CapturedLog log;
    private String stream;
    private String view;
    private String streamTable;

    @BeforeAll
    void openCluster() {
        cluster = TestCluster.ofShards(2);
        database = cluster.dataSources().getFirst();
    }

    @AfterAll
    void closeCluster() {
        cluster.close();
    }

    @BeforeEach
    void open() {
        stream = TestStreams.newName();
        view = "eventsql.events_" + stream;
        streamTable = TestStreams.table(stream);
        eventSql = cluster.open();
        eventSql.createStream(TestStreams.of(stream).withPartitions(1));
        log = CapturedLog.ofRelay();
    }

    @AfterEach
    void close() throws SQLException {
        log.close();
        eventSql.close();
        cluster.closeInstances();
        pools.forEach(HikariDataSource::close);
        pools.clear();
        cluster.execute(
                DROP_TRIGGERS,
                "DELETE FROM eventsql.outbox",
                "DELETE FROM eventsql.outbox_transfer",
                "DELETE FROM eventsql.outbox_refused");
    }

    /** Reopens the instance on connections with these settings of the session. */
    private void reopenWith(String options) throws SQLException {
        eventSql.close();
        for (DataSource shard : cluster.dataSources()) {
            try (Connection connection = shard.getConnection()) {
                pools.add(Pools.pool(
                        TestCluster.server(),
                        connection.getMetaData().getURL(),
                        config -> config.addDataSourceProperty("options", options)));
            }
        }
        eventSql = EventSql.builder(pools).build();
    }

    private void publish(List<Event> events) throws SQLException {
        try (Connection transaction = database.getConnection()) {
            transaction.setAutoCommit(false);
            eventSql.outbox().publishAll(transaction, stream, events);
            transaction.commit();
        }
        eventSql.outbox().committed();
    }

    private void publishOneByOne(int from, int to) throws SQLException {
        for (int i = from; i < to; i++) {
            publish(List.of(Event.ofText("good" + i, "x")));
            awaitRelayed();
        }
    }

    /**
     * Returns events of keys of both shards; every seventh has a bad key that belongs to the shard, and the last one a good
     * key that does.
     */
    private static List<Event> eventsWithBadKeys(int number, int shard) {
        List<Event> events = new ArrayList<>();
        for (int i = 0; i < number - 1; i++) {
            events.add(Event.ofText(i % BAD_EVERY == 3 ? keyOf(shard, "bad" + i) : "good" + i, "" + i));
        }
        events.add(Event.ofText(keyOf(shard, "good"), "the last"));
        return events;
    }

    private static int badOf(int number) {
        return (int)
                IntStream.range(0, number - 1).filter(i -> i % BAD_EVERY == 3).count();
    }

    private static String keyOf(int shard, String prefix) {
        return TestCluster.keysOfShard(shard, 2, prefix).findFirst().orElseThrow();
    }

    private static String onInsert(String condition, String then) {
        return "BEGIN IF " + condition + " THEN " + then + "; END IF; RETURN NEW; END";
    }

    private static String raise(String state) {
        return "RAISE EXCEPTION 'a bad key' USING ERRCODE = '" + state + "'";
    }

    private static void addTrigger(DataSource shard, String table, String events, String body) throws SQLException {
        Sql.execute(
                shard,
                "CREATE OR REPLACE FUNCTION users_trigger() RETURNS trigger LANGUAGE plpgsql AS $$ " + body + " $$",
                "CREATE TRIGGER users_trigger " + events + " ON " + table
                        + " FOR EACH ROW EXECUTE FUNCTION users_trigger()");
    }

    private static void dropTrigger(DataSource shard, String table) throws SQLException {
        Sql.execute(shard, "DROP TRIGGER users_trigger ON " + table);
    }

    private long stored() throws SQLException {
        return cluster.sum("SELECT count(*) FROM " + view);
    }

    private List<String> refused() throws SQLException {
        return Sql.query(database, "SELECT key || ': ' || error FROM eventsql.outbox_refused ORDER BY refused_id");
    }

    private void awaitRelayed() {
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(
                        () -> assertThat(eventSql.outbox().backlogs()).allMatch(backlog -> backlog.events() == 0));
    }

    private void awaitLogged(String... parts) {
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(log.lines())
                        .anySatisfy(line -> assertThat(line).contains(parts)));
    }

    /** Publishes events of which some are bad; expects exactly those to be refused with this reason. */
    private void publishAndExpectRefused(int number, int shard, String reason) throws SQLException {
        publish(eventsWithBadKeys(number, shard));
        awaitRelayed();
        assertThat(refused()).hasSize(badOf(number)).allMatch(line -> line.startsWith("bad") && line.contains(reason));
        assertThat(stored()).isEqualTo(number - badOf(number));
        assertThat(eventSql.outbox().backlogs().getFirst().refusedEvents()).isEqualTo(badOf(number));
    }

    @ParameterizedTest
    @CsvSource({"0, 23514", "0, XX000", "1, XX000", "1, ZZ001"})
    void relay_triggerRejectsEvents_refusesThem(int shard, String state) throws SQLException {
        addTrigger(cluster.dataSources().get(shard), streamTable, "BEFORE INSERT", onInsert(BAD, raise(state)));
        publishAndExpectRefused(40, shard, "a bad key");
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void relay_tombstoneIsRejected_isKeptAndStoredAsOneWhenRetried(int shard) throws SQLException {
        DataSource rejecting = cluster.dataSources().get(shard);
        addTrigger(rejecting, streamTable, "BEFORE INSERT", onInsert(BAD, raise("P0001")));
        String key = keyOf(shard, "bad");
        publish(List.of(Event.ofText(key, "1"), Event.tombstone(key), Event.tombstone(keyOf(shard, "good"))));
        awaitRelayed();
        assertThat(Sql.query(database, "SELECT value IS NULL FROM eventsql.outbox_refused ORDER BY refused_id"))
                .containsExactly("f", "t");
        dropTrigger(rejecting, streamTable);
        assertThat(Sql.queryLong(database, "SELECT eventsql.retry_refused_events()"))
                .isEqualTo(2);
        eventSql.outbox().committed();
        awaitRelayed();
        assertThat(Sql.query(
                        rejecting, "SELECT value IS NULL FROM " + view + " WHERE key = ? ORDER BY event_offset", key))
                .containsExactly("f", "t");
    }

    /** An error that others share as a rule is an event's own if only that event has it. */
    @ParameterizedTest
    @CsvSource({"0, 40001", "1, 53100", "0, 25006", "1, 42703", "0, 42P01", "0, 58030"})
    void relay_triggerRaisesErrorOfTheEnvironmentForOneEvent_refusesItWhenAnotherIsStored(int shard, String state)
            throws SQLException {
        addTrigger(cluster.dataSources().get(shard), streamTable, "BEFORE INSERT", onInsert(BAD, raise(state)));
        publishAndExpectRefused(10, shard, "a bad key");
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void relay_triggerOfOneEventExceedsStatementTimeout_refusesIt(int shard) throws SQLException {
        addTrigger(
                cluster.dataSources().get(shard), streamTable, "BEFORE INSERT", onInsert(BAD, "PERFORM pg_sleep(60)"));
        reopenWith("-c statement_timeout=1s");
        publishAndExpectRefused(10, shard, "statement timeout");
    }

    /** Nothing is refused as long as no event is stored. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void relay_noEventCanBeStoredForAWhile_refusesNoneAndRecovers(int shard) throws SQLException {
        DataSource failing = cluster.dataSources().get(shard);
        addTrigger(
                failing,
                streamTable,
                "BEFORE INSERT",
                onInsert("true", "PERFORM nextval('attempt'); " + raise("53100")));
        Sql.execute(failing, NEW_SEQUENCE);
        publish(eventsWithBadKeys(10, shard));
        await().atMost(Duration.ofSeconds(120))
                .until(() -> Sql.queryLong(failing, "SELECT last_value FROM attempt") > 12);
        awaitLogged("WARN", "a bad key", "retr");
        assertThat(log.lines()).as("said once").hasSizeLessThanOrEqualTo(2);
        dropTrigger(failing, streamTable);
        awaitRelayed();
        assertThat(refused()).isEmpty();
        assertThat(stored()).isEqualTo(10);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void relay_indexCannotHoldAHeader_refusesTheEvent(int shard) throws SQLException {
        assumeThat(TestStreams.areBlocks())
                .as("a block has no column of headers")
                .isFalse();
        Sql.execute(cluster.dataSources().get(shard), "CREATE INDEX by_note ON " + view + " ((headers ->> 'note'))");
        Random random = new Random(1);
        StringBuilder large = new StringBuilder();
        while (large.length() < 6_000) {
            large.append(Long.toHexString(random.nextLong()));
        }
        publish(List.of(
                Event.ofText(keyOf(shard, "good"), "x").withHeader("note", "short"),
                Event.ofText(keyOf(shard, "bad"), "x").withHeader("note", large.toString()),
                Event.ofText(keyOf(shard, "good"), "x").withHeader("note", "short")));
        awaitRelayed();
        assertThat(refused()).singleElement().asString().contains("exceeds btree");
        assertThat(stored()).isEqualTo(2);
    }

    /** The error comes with the commit. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void relay_deferredTriggerRejectsEvents_refusesThem(int shard) throws SQLException {
        Sql.execute(
                cluster.dataSources().get(shard),
                "CREATE OR REPLACE FUNCTION deferred() RETURNS trigger LANGUAGE plpgsql AS $$ "
                        + onInsert(BAD, raise("XX000")) + " $$",
                "CREATE CONSTRAINT TRIGGER deferred AFTER INSERT ON " + streamTable
                        + " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION deferred()");
        publishAndExpectRefused(40, shard, "a bad key");
    }

    @Test
    void relay_triggerOfTransferTableRejectsEvents_refusesThem() throws SQLException {
        addTrigger(
                database, "eventsql.outbox_transfer", "BEFORE INSERT", onInsert("NEW.key LIKE 'bad%'", raise("XX000")));
        publishAndExpectRefused(40, 1, "a bad key");
    }

    /** The lease is kept, so nothing was in doubt. */
    @Test
    void relay_triggersRaiseNoticesAndWarnings_isNotDelayed() throws SQLException {
        String notices = "BEGIN RAISE NOTICE 'a notice'; RAISE WARNING 'a warning'; RETURN coalesce(NEW, OLD); END";
        for (String table :
                List.of(streamTable, "eventsql.outbox", "eventsql.outbox_transfer", "eventsql.outbox_relay")) {
            addTrigger(database, table, "BEFORE INSERT OR UPDATE OR DELETE", notices);
        }
        for (String table : List.of(streamTable, "eventsql.producer_batch", "eventsql.outbox_producer")) {
            addTrigger(cluster.dataSources().get(1), table, "BEFORE INSERT OR UPDATE OR DELETE", notices);
        }
        for (DataSource shard : cluster.dataSources()) {
            Sql.execute(
                    shard,
                    "CREATE CONSTRAINT TRIGGER deferred AFTER INSERT ON " + streamTable
                            + " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION users_trigger()");
        }
        publishAndExpectTheSameLease();
    }

    @Test
    void relay_clientReceivesLogMessages_isNotDelayed() throws SQLException {
        for (DataSource shard : cluster.dataSources()) {
            String name = Sql.query(shard, "SELECT current_database()").getFirst();
            Sql.execute(
                    TestCluster.server().adminDataSource(),
                    "ALTER DATABASE " + name + " SET log_duration = on",
                    "ALTER DATABASE " + name + " SET client_min_messages = log");
        }
        try {
            reopenWith("-c application_name=log_messages");
            publishAndExpectTheSameLease();
        } finally {
            for (DataSource shard : cluster.dataSources()) {
                String name = Sql.query(shard, "SELECT current_database()").getFirst();
                Sql.execute(
                        TestCluster.server().adminDataSource(),
                        "ALTER DATABASE " + name + " RESET log_duration",
                        "ALTER DATABASE " + name + " RESET client_min_messages");
            }
        }
    }

    private void publishAndExpectTheSameLease() throws SQLException {
        String epoch = "SELECT epoch FROM eventsql.outbox_relay";
        publishOneByOne(0, 2);
        long before = Sql.queryLong(database, epoch);
        publishOneByOne(2, 10);
        assertThat(Sql.queryLong(database, epoch)).isEqualTo(before);
        assertThat(stored()).isEqualTo(10);
        assertThat(log.lines()).isEmpty();
    }

    /** No statement of the relay may delete the event, so it can only say why its events wait. */
    @Test
    void relay_triggerOfOutboxRejectsDelete_saysSoAndRecovers() throws SQLException {
        addTrigger(
                database,
                "eventsql.outbox",
                "BEFORE DELETE",
                "BEGIN IF OLD.key LIKE 'bad%' THEN " + raise("P0001") + "; END IF; RETURN OLD; END");
        publish(eventsWithBadKeys(10, 0));
        awaitLogged("WARN", "shard0", "a bad key", "retr");
        dropTrigger(database, "eventsql.outbox");
        awaitRelayed();
        assertThat(stored()).isEqualTo(10);
        assertThat(refused()).isEmpty();
    }

    @Test
    void relay_triggerOfOutboxSuppressesDelete_saysSoAndRecovers() throws SQLException {
        addTrigger(database, "eventsql.outbox", "BEFORE DELETE", "BEGIN RETURN NULL; END");
        publish(eventsWithBadKeys(10, 0));
        awaitLogged("WARN", "shard0", "trigger", "table outbox");
        dropTrigger(database, "eventsql.outbox");
        awaitRelayed();
        assertThat(stored()).isEqualTo(10);
    }

    /** A rejected event that cannot be kept with its reason is not lost. Retries have pauses. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void relay_refusedTableRejectsEvents_saysSoAndRecovers(int shard) throws SQLException {
        Sql.execute(database, NEW_SEQUENCE);
        addTrigger(cluster.dataSources().get(shard), streamTable, "BEFORE INSERT", onInsert(BAD, raise("XX000")));
        Sql.execute(
                database,
                "CREATE OR REPLACE FUNCTION full_table() RETURNS trigger LANGUAGE plpgsql AS"
                        + " $$ BEGIN PERFORM nextval('attempt'); RAISE 'no room for refused events'; END $$",
                "CREATE TRIGGER full_table BEFORE INSERT ON eventsql.outbox_refused"
                        + " FOR EACH ROW EXECUTE FUNCTION full_table()");
        publish(eventsWithBadKeys(10, shard));
        awaitLogged("no room for refused events", "retr");
        await().during(Duration.ofSeconds(2)).atMost(Duration.ofSeconds(120)).until(() -> true);
        assertThat(Sql.queryLong(database, "SELECT last_value FROM attempt"))
                .as("attempts with pauses")
                .isLessThan(100);
        dropTrigger(database, "eventsql.outbox_refused", "full_table");
        awaitRelayed();
        assertThat(refused()).hasSize(badOf(10));
        assertThat(stored()).isEqualTo(10 - badOf(10));
    }

    private static void dropTrigger(DataSource shard, String table, String name) throws SQLException {
        Sql.execute(shard, "DROP TRIGGER " + name + " ON " + table);
    }

    /** Emptying a table of the ring is housekeeping. */
    @Test
    void relay_triggerRejectsTruncate_continues() throws SQLException {
        Sql.execute(
                database,
                "CREATE OR REPLACE FUNCTION no_truncate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no truncate'; END $$");
        for (int ring = 0; ring < 4; ring++) {
            Sql.execute(
                    database,
                    "CREATE TRIGGER no_truncate BEFORE TRUNCATE ON eventsql.outbox_" + ring
                            + " FOR EACH STATEMENT EXECUTE FUNCTION no_truncate()");
        }
        String epoch = "SELECT epoch FROM eventsql.outbox_relay";
        publishOneByOne(0, 2);
        long before = Sql.queryLong(database, epoch);
        for (int call = 0; call < 20; call++) { // enough for several tables of the ring
            publish(IntStream.range(0, 100)
                    .mapToObj(i -> Event.of(new byte[400]))
                    .toList());
            awaitRelayed();
        }
        awaitLogged("WARN", "no truncate");
        assertThat(log.lines()).as("said once").hasSize(1);
        assertThat(Sql.queryLong(database, epoch)).as("lease kept").isEqualTo(before);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void relay_manyEventsAreRefused_logsThemOnce(int shard) throws SQLException {
        addTrigger(cluster.dataSources().get(shard), streamTable, "BEFORE INSERT", onInsert(BAD, raise("P0001")));
        publishAndExpectRefused(200, shard, "a bad key");
        assertThat(log.lines()).hasSize(1);
        assertThat(log.lines().getFirst()).contains("ERROR", "shard0", "outbox_refused", "a bad key");
    }

    /** That it is refused is known to this process alone until it is removed, and a later event shows only what was stored. */
    @Test
    void relay_processIsCutOffAfterARejection_anotherRefusesTheEventToo() throws Exception {
        DataSource shard = cluster.dataSources().get(1);
        addTrigger(
                shard,
                streamTable,
                "BEFORE INSERT",
                onInsert(BAD, "PERFORM pg_advisory_xact_lock(1); " + raise("P0001")));
        eventSql.close();
        List<SwitchableDataSource> switchable =
                cluster.dataSources().stream().map(SwitchableDataSource::new).toList();
        eventSql = EventSql.builder(switchable)
                .settings(Settings.builder().outboxLease(Duration.ofSeconds(1)).build())
                .build();
        try (Connection gate = shard.getConnection();
                Connection transfers = database.getConnection()) {
            gate.setAutoCommit(false);
            Sql.query(gate, "SELECT pg_advisory_xact_lock(1)");
            publish(List.of(Event.ofText(keyOf(1, "bad"), "1")));
            awaitBlocked(shard, "advisory");
            publish(List.of(Event.ofText(keyOf(1, "good"), "2")));
            await().atMost(Duration.ofSeconds(120))
                    .until(() -> Sql.queryLong(database, "SELECT count(*) FROM eventsql.outbox_transfer") == 2);
            transfers.setAutoCommit(false);
            try (Statement lock = transfers.createStatement()) {
                lock.execute("LOCK TABLE eventsql.outbox_transfer IN SHARE MODE");
            }
            gate.rollback(); // the first event is rejected now
            awaitBlocked(database, "relation");
            switchable.forEach(one -> one.setUnavailable("cut off by the test"));
            Sql.execute(database, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE " + BLOCKED);
        }
        try (EventSql another = cluster.open()) {
            await().atMost(Duration.ofSeconds(120))
                    .untilAsserted(
                            () -> assertThat(another.outbox().backlogs()).allMatch(backlog -> backlog.events() == 0));
        } finally {
            switchable.forEach(one -> one.setAvailable(true));
        }
        assertThat(refused()).singleElement().asString().startsWith("bad").contains("a bad key");
        assertThat(stored()).isEqualTo(1);
    }

    private static void awaitBlocked(DataSource shard, String lock) {
        await().atMost(Duration.ofSeconds(120))
                .until(() -> Sql.queryLong(
                                shard,
                                "SELECT count(*) FROM pg_stat_activity WHERE " + BLOCKED + " AND wait_event = '" + lock
                                        + "'")
                        > 0);
    }

    @Test
    void retryRefusedEvents_causeIsGone_areRelayedInOrder() throws SQLException {
        DataSource shard = cluster.dataSources().get(1);
        addTrigger(shard, streamTable, "BEFORE INSERT", onInsert(BAD, raise("P0001")));
        String key = keyOf(1, "bad");
        publish(IntStream.range(0, 5)
                .mapToObj(i -> Event.ofText(key, "" + i).withHeader("number", "" + i))
                .toList());
        awaitRelayed();
        assertThat(refused()).hasSize(5);
        dropTrigger(shard, streamTable);

        assertThat(Sql.queryLong(database, "SELECT eventsql.retry_refused_events('another')"))
                .isZero();
        assertThat(Sql.queryLong(database, "SELECT eventsql.retry_refused_events('" + stream + "', 2)"))
                .isEqualTo(2);
        assertThat(Sql.queryLong(database, "SELECT eventsql.retry_refused_events()"))
                .isEqualTo(3);
        awaitRelayed();
        assertThat(Sql.query(
                        shard,
                        "SELECT convert_from(value, 'UTF8') || (headers ->> 'number') FROM " + view
                                + " ORDER BY event_offset"))
                .containsExactly("00", "11", "22", "33", "44");
        assertThat(refused()).isEmpty();
    }

    @Test
    void insert_headersAreNoObjectThatJsonOperatorsAccept_isRejected() throws SQLException {
        for (String headers : List.of("null", "[]", "[\"a\"]", "1", "\"a\"", "true", "{\"a\": \"\\u0000\"}")) {
            assertThatExceptionOfType(SQLException.class)
                    .as(headers)
                    .isThrownBy(() -> insertBySql(headers))
                    .satisfies(e -> assertThat(e.getSQLState()).isIn("23514", "22P05"));
        }
        assertThat(Sql.queryLong(database, "SELECT count(*) FROM eventsql.outbox"))
                .isZero();
    }

    @Test
    void insert_headersAreAnObjectOrAbsent_isRelayed() throws SQLException {
        insertBySql("{}");
        insertBySql("{\"a\": \"\\u00e4\", \"b\": 1}");
        insertBySql(null);
        awaitRelayed();
        assertThat(stored()).isEqualTo(3);
    }

    private void insertBySql(String headers) throws SQLException {
        Sql.query(
                database,
                "INSERT INTO eventsql.outbox (ring, stream, key, value, headers, routing_hash)" + " VALUES (0, '"
                        + stream + "', 'key', 'x', ?::json, 0) RETURNING id",
                headers);
    }
}
