package io.eventsql.internal.schema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.MigrationFiles;
import io.eventsql.fixture.Roles;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.SqlSchema;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;

@Timeout(120)
class MigratorIT {
    private static final String VERSIONS =
            "SELECT version || ' ' || description FROM eventsql.schema_version ORDER BY version";
    private static final List<String> ALL = List.of(
            "1 outbox",
            "2 event log",
            "3 transferred events",
            "4 consumers",
            "5 offset functions",
            "6 lease functions",
            "7 maintenance functions",
            "8 segments",
            "9 retention",
            "10 consumer status",
            "11 erasure",
            "12 compaction",
            "13 latest",
            "14 outbox erasure",
            "15 outbox tombstones",
            "16 deleting streams",
            "17 append",
            "18 fetch",
            "19 blocks",
            "20 fetch heads",
            "21 key versions",
            "22 scheduled events",
            "23 fetch streams",
            "24 block compaction",
            "25 growth",
            "26 replicas",
            "27 sinks",
            "28 keyed growth",
            "29 shards",
            "30 parked keys",
            "31 stationary streams",
            "32 growth after moves",
            "33 offset commits",
            "34 many streams",
            "35 moved offsets",
            "36 key readers",
            "37 frozen segments",
            "38 steady maintenance",
            "39 repairs",
            "40 outbox repairs",
            "41 more repairs",
            "42 erased tombstones",
            "43 key pages",
            "44 owner of functions",
            "45 setting names",
            "46 seeks in order",
            "47 publications and savepoints",
            "48 plans of heartbeats");
    private static final StreamSpec STREAM = StreamSpec.of("orders").withPartitions(2);

    private DataSource database;
    private HikariDataSource pool;

    @BeforeEach
    void createDatabase() {
        use(TestCluster.newDatabase());
    }

    /** Replaces the empty database, for tests of what comes after a migration to the newest version. */
    private void useMigratedDatabase() {
        pool.close();
        use(TestCluster.newDatabaseWithTables());
    }

    private void use(DataSource created) {
        database = created;
        pool = TestCluster.pool(created);
    }

    @AfterEach
    void closePool() {
        pool.close();
    }

    private static EventSql open(DataSource dataSource, String schema, boolean migrate) {
        return EventSql.builder(dataSource)
                .settings(
                        Settings.builder().schema(schema).migrateSchema(migrate).build())
                .build();
    }

    private EventSql open() {
        return open(pool, Settings.DEFAULT_SCHEMA, true);
    }

    private static void assertWorks(EventSql eventSql) {
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(ConsumerSpec.of("orders", "c"), handled::add)) {
            EventPosition position = eventSql.publisher()
                    .publish("orders", Event.ofText("key", "x").withHeader("a", "b"));
            handled.awaitSize(1).assertOnceAndInOrder();
            assertThat(eventSql.read(position, 10)).hasSize(1);
        }
        assertThat(eventSql.positions("orders", "c")).allMatch(p -> p.lag() == 0);
    }

    @Test
    void migrate_freshDatabase_hasTheNewestVersion_andAgainChangesNothing() throws SQLException {
        try (EventSql eventSql = open()) {
            eventSql.createStream(STREAM);
            assertWorks(eventSql);
        }
        assertThat(Sql.query(pool, VERSIONS)).containsExactlyElementsOf(ALL);
        String objects = "SELECT string_agg(c.oid::text, ',' ORDER BY c.oid) FROM pg_class c"
                + " JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = 'eventsql'";
        List<String> before = Sql.query(pool, objects);
        try (EventSql eventSql = open()) {
            assertWorks(eventSql);
        }
        assertThat(Sql.query(pool, objects)).isEqualTo(before);
        assertThat(Sql.query(pool, VERSIONS)).containsExactlyElementsOf(ALL);
    }

    /**
     * Goal: instances that start at the same moment on an empty database all work, and each file is applied once.
     * Method: threads wait at a latch, then open and publish.
     */
    @Test
    void migrate_manyInstancesAtOnce_eachFileIsAppliedOnce() throws Exception {
        CountDownLatch start = new CountDownLatch(1);
        try (ExecutorService executor = Executors.newCachedThreadPool()) {
            List<Future<EventPosition>> results = new ArrayList<>();
            for (int instance = 0; instance < 4; instance++) {
                results.add(executor.submit(() -> {
                    start.await();
                    try (EventSql eventSql = open()) {
                        eventSql.createStream(STREAM);
                        return eventSql.publisher().publish("orders", Event.ofText("key", "x"));
                    }
                }));
            }
            start.countDown();
            List<Long> offsets = new ArrayList<>();
            for (Future<EventPosition> result : results) {
                offsets.add(result.get(120, TimeUnit.SECONDS).offset());
            }
            assertThat(offsets).containsExactlyInAnyOrder(0L, 1L, 2L, 3L);
        }
        assertThat(Sql.query(pool, VERSIONS)).containsExactlyElementsOf(ALL);
    }

    @Test
    void migrate_disabledOnFreshDatabase_failsAndLeavesItEmpty() throws SQLException {
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(() -> open(pool, Settings.DEFAULT_SCHEMA, false))
                .withMessageContaining("outbox/V1__outbox.sql, shard/V2__event_log.sql, ")
                .withMessageContaining("settings.migrateSchema");
        assertThat(Sql.query(pool, "SELECT nspname FROM pg_namespace WHERE nspname = 'eventsql'"))
                .isEmpty();
    }

    /** A stream that grew twice without an event in between, by a release that set no barriers for empty partitions. */
    @Test
    void migrate_streamHasGrownWithEmptyPartitions_getsTheBarriersThatAreMissing() throws Exception {
        useMigratedDatabase();
        try (EventSql eventSql = open()) {
            eventSql.createStream(STREAM);
            eventSql.publisher().publish("orders", Event.ofText("key", "x"));
            eventSql.grow("orders", 5);
            eventSql.grow("orders", 9);
        }
        String barriers =
                "SELECT partition || '<' || giver || '<' || end_offset FROM eventsql.partition_barrier ORDER BY 1";
        List<String> complete = Sql.query(pool, barriers);
        Sql.execute(pool, "DELETE FROM eventsql.partition_barrier WHERE end_offset = 0");
        assertThat(Sql.query(pool, barriers)).hasSizeLessThan(complete.size());
        String migration = MigrationFiles.read("shard/V32__growth_after_moves.sql");
        int statement = migration.indexOf("INSERT INTO eventsql.partition_barrier");
        Sql.execute(pool, migration.substring(statement, migration.indexOf(';', statement)));
        assertThat(Sql.query(pool, barriers)).isEqualTo(complete);
    }

    @Test
    void migrate_disabledOnPreparedDatabase_worksForRoleWithoutCreate() throws SQLException {
        useMigratedDatabase();
        try (EventSql owner = open()) {
            owner.createStream(STREAM);
        }
        try (HikariDataSource restricted = TestCluster.pool(roleWithoutCreate());
                EventSql eventSql = open(restricted, Settings.DEFAULT_SCHEMA, false)) {
            assertWorks(eventSql);
            assertThatExceptionOfType(EventSqlException.class)
                    .isThrownBy(() -> eventSql.createStream(StreamSpec.of("more")))
                    .withMessageContaining("more")
                    .withMessageContaining("permission denied");
            assertThat(eventSql.streams()).containsExactly(STREAM);
        }
    }

    @Test
    void migrate_roleWithoutCreate_failsWithPermissionDenied() throws SQLException {
        DataSource restricted = roleWithoutCreate();
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(() -> open(restricted, "other_schema", true))
                .withMessageContaining("permission denied");
    }

    /** Returns a role that may use the tables but not create any. */
    private DataSource roleWithoutCreate() throws SQLException {
        PGSimpleDataSource owner = (PGSimpleDataSource) database;
        String role = owner.getDatabaseName() + "_app";
        Sql.execute(TestCluster.server().adminDataSource(), "CREATE ROLE " + role + " LOGIN PASSWORD 'test'");
        if (!Sql.query(pool, "SELECT 1 FROM pg_namespace WHERE nspname = 'eventsql'")
                .isEmpty()) {
            Sql.execute(
                    pool,
                    "GRANT USAGE ON SCHEMA eventsql TO " + role,
                    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA eventsql TO " + role);
        }
        PGSimpleDataSource restricted = new PGSimpleDataSource();
        restricted.setUrl(owner.getUrl());
        restricted.setUser(role);
        restricted.setPassword("test");
        return restricted;
    }

    @ParameterizedTest
    @ValueSource(strings = {"a", "eventsql2", "my_eventsql", "table"})
    void migrate_otherSchemaName_createsEverythingThere(String schema) throws SQLException {
        try (EventSql eventSql = open(pool, schema, true)) {
            eventSql.createStream(STREAM.asJson().withSegmentSize(100));
            assertWorks(eventSql);
            assertRelaysCountedEventsAndDeletes(eventSql, schema);
        }
        assertThat(Sql.query(pool, "SELECT DISTINCT schemaname FROM pg_tables WHERE schemaname !~ '^pg_|^inf'"))
                .containsExactly(schema);
        assertThat(Sql.query(pool, "SELECT count(*) FROM \"" + schema + "\".events_orders__json"))
                .containsExactly("1");
    }

    /** A transaction publishes an event that is counted, and inserts one with SQL, which is not. */
    private void assertRelaysCountedEventsAndDeletes(EventSql eventSql, String schema) throws SQLException {
        String prefix = "\"" + schema + "\".";
        eventSql.createStream(StreamSpec.of("counted").withPartitions(1).withKeyVersions());
        try (Connection connection = pool.getConnection()) {
            connection.setAutoCommit(false);
            Sql.query(
                    connection,
                    "INSERT INTO " + prefix + "outbox (ring, stream, key, value, routing_hash)"
                            + " SELECT last_value, 'counted', 'key', '0', 0 FROM " + prefix
                            + "outbox_ring RETURNING id");
            eventSql.outbox().publish(connection, "counted", Event.ofText("key", "1"));
            connection.commit();
            connection.setAutoCommit(true);
        }
        await().untilAsserted(() -> assertThat(Sql.queryLong(pool, "SELECT count(*) FROM " + prefix + "events_counted"))
                .isEqualTo(2));
        assertThat(eventSql.keyVersion("counted", "key")).isEqualTo(2);

        eventSql.deleteStream("counted", eventSql.previewDeleteStream("counted").confirmation());

        assertThat(eventSql.streams()).extracting(StreamSpec::name).containsExactly("orders");
        assertThat(Sql.queryLong(pool, "SELECT count(*) FROM " + prefix + "key_version"))
                .isZero();
    }

    /** Functions name the schema without quotes, but the library writes it with quotes and changes their text. */
    @ParameterizedTest
    @ValueSource(ints = {37, 42})
    void migrate_anotherToolAppliedFilesWithoutQuotes_continues(int version) throws SQLException {
        Sql.execute(pool, MigrationFiles.upTo(version, "my_events", "my_events."));
        try (EventSql eventSql = open(pool, "my_events", true)) {
            eventSql.createStream(STREAM);
            assertWorks(eventSql);
            assertRelaysCountedEventsAndDeletes(eventSql, "my_events");
        }
    }

    @Test
    void migrate_anotherToolAppliedAllFilesToAnotherSchema_worksDisabledAndEnabled() throws SQLException {
        Sql.execute(pool, MigrationFiles.upTo(Integer.MAX_VALUE, "my_events", "my_events."));
        try (EventSql eventSql = open(pool, "my_events", false)) {
            eventSql.createStream(STREAM);
            assertWorks(eventSql);
            assertRelaysCountedEventsAndDeletes(eventSql, "my_events");
        }
        try (EventSql eventSql = open(pool, "my_events", true)) {
            assertWorks(eventSql);
        }
    }

    /** A process of the previous release relays, or a transaction has begun before the migration. */
    @ParameterizedTest
    @ValueSource(strings = {"eventsql.relayed", "eventsql_keys.relayed"})
    void migrate_relayOfEitherRelease_appendsBeforeCountedEventsOfItsKey(String setting) throws SQLException {
        useMigratedDatabase();
        try (EventSql eventSql = open()) {
            eventSql.createStream(StreamSpec.of("counted").withPartitions(1).withKeyVersions());
            try (Connection connection = pool.getConnection();
                    Connection relay = pool.getConnection()) {
                relay.setAutoCommit(false);
                Sql.query(relay, "SELECT 1 FROM eventsql.outbox_relay FOR UPDATE"); // keeps the event in the outbox
                connection.setAutoCommit(false);
                eventSql.outbox().publish(connection, "counted", Event.ofText("key", "1"));
                connection.commit();
                connection.setAutoCommit(true);
                String raise = "SELECT eventsql.raise_key_versions_v1(stream_id, '{0}', '{key}', '{1}')"
                        + " FROM eventsql.stream WHERE name = 'counted'";
                assertThatExceptionOfType(SQLException.class)
                        .isThrownBy(() -> Sql.query(pool, raise))
                        .satisfies(e -> assertThat(e.getSQLState()).isEqualTo("ES022"));
                Sql.query(relay, "SELECT set_config(?, 'on', true)", setting);
                Sql.query(relay, raise);
                relay.rollback();
                relay.setAutoCommit(true);
            }
        }
    }

    /** An index over a large outbox may take long: the migration has a limit of its own, and names the way without one. */
    @Test
    void migrate_fileTakesTooLong_isRolledBackAndNamesTheRemedy() throws SQLException {
        delayIndexes(6);
        Database target = new Database(pool, Duration.ofSeconds(2));
        SqlSchema schema = new SqlSchema(Settings.DEFAULT_SCHEMA);
        assertThatExceptionOfType(SQLException.class)
                .isThrownBy(() -> new Migrator(schema, true, Duration.ofSeconds(4)).migrate(target))
                .withMessageContaining("psql")
                .withMessageContaining("statement timeout");
        assertThat(Sql.query(pool, "SELECT 1 FROM pg_namespace WHERE nspname = 'eventsql'"))
                .isEmpty();
    }

    /** From version 17 on. */
    @Test
    void migrate_transactionsAreLimited_isNotCanceled() throws SQLException {
        assumeThat(Sql.queryLong(pool, "SELECT current_setting('server_version_num')"))
                .isGreaterThanOrEqualTo(170_000);
        Sql.execute(
                Roles.admin(database),
                "ALTER DATABASE " + Sql.query(pool, "SELECT current_database()").getFirst()
                        + " SET transaction_timeout = '2s'");
        delayIndexes(3);
        try (HikariDataSource limited = TestCluster.pool(database)) {
            new Migrator(new SqlSchema(Settings.DEFAULT_SCHEMA), true)
                    .migrate(new Database(limited, Duration.ofSeconds(20)));
        }
        assertThat(Sql.query(pool, VERSIONS)).containsExactlyElementsOf(ALL);
    }

    private void delayIndexes(int seconds) throws SQLException {
        Sql.execute(
                Roles.admin(database),
                "CREATE FUNCTION public.delay_index() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN"
                        + " IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands()"
                        + " WHERE object_identity LIKE '%outbox_transfer_key_hash') THEN PERFORM pg_sleep(" + seconds
                        + "); END IF; END $$",
                "CREATE EVENT TRIGGER delay_index ON ddl_command_end WHEN TAG IN ('CREATE INDEX')"
                        + " EXECUTE FUNCTION public.delay_index()");
    }

    /** One of the schemas exists, and is empty. */
    @Test
    void migrate_twoSchemasInOneDatabase_createsTwoClusters() throws SQLException {
        Sql.execute(pool, "CREATE SCHEMA one");
        try (EventSql one = open(pool, "one", true);
                EventSql two = open(pool, "two", true)) {
            one.createStream(STREAM);
            two.createStream(STREAM.withPartitions(3));
            assertWorks(one);
            assertWorks(two);
            assertThat(two.streams()).containsExactly(STREAM.withPartitions(3));
        }
        assertThat(Sql.query(pool, "SELECT cluster_id FROM one.shard UNION SELECT cluster_id FROM two.shard"))
                .hasSize(2);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void migrate_newerVersionInTheDatabase_isAccepted(boolean migrate) throws SQLException {
        useMigratedDatabase();
        try (EventSql eventSql = open()) {
            eventSql.createStream(STREAM);
        }
        Sql.execute(pool, "INSERT INTO eventsql.schema_version (version, description) VALUES (99, 'from the future')");
        try (EventSql eventSql = open(pool, Settings.DEFAULT_SCHEMA, migrate)) {
            assertWorks(eventSql);
        }
        assertThat(Sql.query(pool, VERSIONS))
                .containsExactlyElementsOf(Stream.concat(ALL.stream(), Stream.of("99 from the future"))
                        .toList());
    }

    @Test
    void migrate_fails_leavesNothingBehind() throws SQLException {
        Sql.execute(pool, "CREATE SCHEMA eventsql", "CREATE TABLE eventsql.consumer_member (foreign_table int)");
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(this::open)
                .withMessageContaining("consumer_member");
        assertThat(Sql.query(pool, "SELECT tablename FROM pg_tables WHERE schemaname = 'eventsql'"))
                .containsExactly("consumer_member");
    }
}
