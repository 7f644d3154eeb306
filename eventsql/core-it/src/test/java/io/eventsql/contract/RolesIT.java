package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.FailurePolicy;
import io.eventsql.PartitionState;
import io.eventsql.RetryPolicy;
import io.eventsql.Settings;
import io.eventsql.StartPosition;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Roles;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: with the roles of {@code roles.sql}, each process has the rights that it needs and no others. Method: each process
 * logs in as a role of its own; segments have 100 events, so that segments are added all the time.
 */
@Timeout(120)
class RolesIT {
    private static final StreamSpec STREAM =
            StreamSpec.of("orders").withPartitions(1).withSegmentSize(100);
    private static final StreamSpec DEAD_LETTERS =
            StreamSpec.of("orders_dead").withPartitions(1).withSegmentSize(100);
    private static final RetryPolicy ONE_ATTEMPT = RetryPolicy.defaults().withMaxAttempts(1);
    private static final String PERMISSION_DENIED = "42501";

    private final List<AutoCloseable> opened = new ArrayList<>();
    private DataSource database;
    private EventSql owner;
    private HikariDataSource ownerPool;

    @BeforeEach
    void prepareDatabase() throws Exception {
        database = TestCluster.newDatabase();
        try (HikariDataSource first = TestCluster.pool(database)) {
            EventSql.builder(first).build().close();
        }
        Roles.apply(database, "eventsql");
        ownerPool = login("eventsql_owner");
        owner = open(ownerPool);
        owner.createStream(STREAM);
        owner.createStream(DEAD_LETTERS);
    }

    @AfterEach
    void closeAll() throws Exception {
        for (AutoCloseable one : opened.reversed()) {
            one.close();
        }
    }

    private HikariDataSource login(String... roles) throws SQLException {
        HikariDataSource pool = Roles.pool(database, Roles.create(roles));
        opened.add(pool);
        return pool;
    }

    private EventSql open(DataSource pool) {
        EventSql eventSql = EventSql.builder(pool)
                .settings(Settings.builder()
                        .maxBatchEvents(50)
                        .publishTimeout(Duration.ofSeconds(5))
                        .build())
                .build();
        opened.add(eventSql);
        return eventSql;
    }

    private EventSql as(String... roles) throws SQLException {
        return open(login(roles));
    }

    private static List<Event> events(int from, int to) {
        return IntStream.range(from, to)
                .mapToObj(i -> Event.ofText("k" + i % 10, "" + i))
                .toList();
    }

    private static void publish(EventSql publisher, int from, int to) {
        for (int i = from; i < to; i += 50) {
            publisher.publisher().publishAll("orders", events(i, Math.min(i + 50, to)));
        }
    }

    private static List<StoredEvent> read(EventSql reader, String stream, int events) {
        List<StoredEvent> read = reader.read(new EventPosition(stream, 0, 0, 0), events + 1);
        assertThat(read).hasSize(events);
        return read;
    }

    private List<String> segments() throws SQLException {
        return Sql.query(
                ownerPool,
                "SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'eventsql.events_orders__p0'::regclass");
    }

    @Test
    void publisher_acrossSegments_segmentsAreAddedAndReadable() throws SQLException {
        EventSql publisher = as("eventsql_publisher");

        publish(publisher, 0, 730);

        read(as("eventsql_reader"), "orders", 730);
        await().untilAsserted(() -> assertThat(segments()).hasSizeGreaterThan(8));
        assertThat(Sql.query(ownerPool, "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'eventsql'"))
                .containsExactly("eventsql_owner");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "SELECT * FROM eventsql.events_orders",
                "SELECT * FROM eventsql.events_orders__p0_s0",
                "SELECT * FROM eventsql.outbox",
                "SELECT * FROM eventsql.parked_event",
                "INSERT INTO eventsql.events_orders VALUES (0, 0, 'k', '', NULL, now())",
                "UPDATE eventsql.events_orders SET key = 'x'",
                "DELETE FROM eventsql.events_orders",
                "TRUNCATE eventsql.events_orders__p0_s0",
                "DROP TABLE eventsql.events_orders__p0_s0",
                "DROP TABLE eventsql.events_orders",
                "ALTER TABLE eventsql.events_orders ADD COLUMN x int",
                "ALTER TABLE eventsql.events_orders__p0 DETACH PARTITION eventsql.events_orders__p0_s0",
                "CREATE TABLE eventsql.mine (x int)",
                "CREATE TRIGGER t BEFORE INSERT ON eventsql.events_orders FOR EACH ROW EXECUTE FUNCTION tsvector_update_trigger()",
                "DELETE FROM eventsql.producer_batch",
                "UPDATE eventsql.producer_batch SET next_offset = 1000",
                "UPDATE eventsql.stream_partition SET log_start = 1",
                "UPDATE eventsql.stream SET name = 'other'",
                "UPDATE eventsql.shard SET map_version = 2",
                "DELETE FROM eventsql.outbox",
                "SELECT eventsql.create_stream_v1('mine', 1, 100, false, 1)",
                "SELECT eventsql.create_partitions_v1(1, 1)",
                "SELECT eventsql.start_at_head_v1(1, 0)",
                "SELECT eventsql.apply_stream_grants_v1('orders')",
                "GRANT SELECT ON eventsql.events_orders TO PUBLIC",
                "SET ROLE eventsql_owner"
            })
    void publisher_readsDropsOrAlters_isDenied(String statement) throws SQLException {
        publish(owner, 0, 10);
        assertDenied(login("eventsql_publisher"), statement);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "INSERT INTO eventsql.events_orders VALUES (0, 0, 'k', '', NULL, now())",
                "DELETE FROM eventsql.events_orders__p0_s0",
                "DROP TABLE eventsql.events_orders__p0_s0",
                "DELETE FROM eventsql.producer_batch",
                "UPDATE eventsql.stream_partition SET log_start = 1",
                "SELECT * FROM eventsql.outbox",
                "INSERT INTO eventsql.outbox (ring, stream, value, routing_hash) VALUES (0, 'orders', '', 1)",
                "SELECT eventsql.create_stream_v1('mine', 1, 100, false, 1)"
            })
    void consumer_writesEventsOrAlters_isDenied(String statement) throws SQLException {
        publish(owner, 0, 10);
        assertDenied(login("eventsql_consumer"), statement);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "DELETE FROM eventsql.events_orders__p0_s0",
                "INSERT INTO eventsql.consumer (stream_id, name) VALUES (1, 'c')",
                "DELETE FROM eventsql.consumer_offset",
                "DELETE FROM eventsql.parked_event",
                "SELECT eventsql.add_segment_v1(1, 0, 2)",
                "SELECT eventsql.delete_dead_producers_v1(gen_random_uuid())",
                "SELECT * FROM eventsql.outbox"
            })
    void reader_writes_isDenied(String statement) throws SQLException {
        publish(owner, 0, 10);
        assertDenied(login("eventsql_reader"), statement);
    }

    private static void assertDenied(DataSource role, String statement) {
        assertThatThrownBy(() -> Sql.execute(role, statement))
                .isInstanceOfSatisfying(
                        SQLException.class, e -> assertThat(e.getSQLState()).isEqualTo(PERMISSION_DENIED));
    }

    @Test
    void consumer_acrossSegments_consumesParksAndSendsDeadLetters() throws SQLException {
        EventSql publisher = as("eventsql_publisher");
        EventSql consumer = as("eventsql_consumer");
        Handled handled = new Handled();
        ConsumerSpec parking = ConsumerSpec.of("orders", "parking")
                .withRetry(ONE_ATTEMPT)
                .withFailurePolicy(FailurePolicy.PARK_KEY)
                .withDeadLetterStream("orders_dead");
        ConsumerSpec deadLetters = ConsumerSpec.of("orders", "dead")
                .withRetry(ONE_ATTEMPT)
                .withFailurePolicy(FailurePolicy.DEAD_LETTER)
                .withDeadLetterStream("orders_dead");
        try (Subscription ignored = consumer.subscribe(parking, event -> failOn("k3", event, handled));
                Subscription alsoIgnored =
                        consumer.subscribe(deadLetters, event -> failOn("k4", event, new Handled()))) {
            publish(publisher, 0, 1_500);

            assertThat(handled.awaitSize(1_350).positions())
                    .doesNotHaveDuplicates()
                    .isSortedAccordingTo(Comparator.comparing(EventPosition::offset));
            await().untilAsserted(() -> {
                assertThat(consumer.consumer("orders", "parking").parkedEvents(1_000))
                        .hasSize(150);
                assertThat(consumer.consumer("orders", "dead").parkedEvents(1_000))
                        .hasSize(150);
            });
        }
        read(as("eventsql_reader"), "orders_dead", 150);
        assertThat(consumer.consumer("orders", "parking").state())
                .extracting(PartitionState::lag)
                .containsOnly(0L);
    }

    private static void failOn(String key, StoredEvent event, Handled handled) {
        if (key.equals(event.key())) {
            throw new IllegalStateException("as planned");
        }
        handled.add(event);
    }

    @Test
    void consumer_exactlyOnceAndSeek_works() throws SQLException {
        EventSql publisher = as("eventsql_publisher");
        HikariDataSource pool = login("eventsql_consumer");
        EventSql consumer = open(pool);
        Sql.execute(
                Roles.admin(database), "CREATE TABLE effect (event_offset bigint)", "GRANT ALL ON effect TO PUBLIC");
        try (Subscription ignored = consumer.subscribeTransactional(
                ConsumerSpec.of("orders", "c"), (event, connection) -> insertEffect(connection, event))) {
            publish(publisher, 0, 250);
            await().untilAsserted(() -> assertThat(Sql.queryLong(pool, "SELECT count(*) FROM effect"))
                    .isEqualTo(250));
        }

        consumer.consumer("orders", "c").seek(StartPosition.atOffset(200));
        try (Subscription ignored = consumer.subscribeTransactional(
                ConsumerSpec.of("orders", "c"), (event, connection) -> insertEffect(connection, event))) {
            await().untilAsserted(() -> assertThat(Sql.queryLong(pool, "SELECT count(*) FROM effect"))
                    .isEqualTo(300));
        }
        consumer.consumer("orders", "c").delete();
    }

    private static void insertEffect(Connection connection, StoredEvent event) throws SQLException {
        try (var statement = connection.prepareStatement("INSERT INTO effect VALUES (?)")) {
            statement.setLong(1, event.offset());
            statement.executeUpdate();
        }
    }

    /** A process that may not relay publishes to the outbox all the same; one that may, relays. */
    @Test
    void publisher_inTransaction_isRelayedByARoleThatMay() throws SQLException {
        owner.close();
        HikariDataSource pool = login("eventsql_publisher");
        EventSql publisher = open(pool);
        publishInTransactions(publisher, pool, 250);
        assertThat(Sql.queryLong(ownerPool, "SELECT count(*) FROM eventsql.outbox"))
                .isEqualTo(250);

        try (EventSql relay = as("eventsql_relay")) {
            await().untilAsserted(
                            () -> assertThat(Sql.queryLong(ownerPool, "SELECT count(*) FROM eventsql.events_orders"))
                                    .isEqualTo(250));
            assertThat(relay.outbox().backlogs().getFirst().events()).isZero();
        }
        read(as("eventsql_reader"), "orders", 250);
    }

    @Test
    void relay_losesARightWhileItRuns_continuesWhenGranted() throws SQLException {
        owner.close();
        HikariDataSource pool = login("eventsql_publisher");
        EventSql publisher = open(pool);
        try (EventSql relay = as("eventsql_relay")) {
            publishInTransactions(publisher, pool, 100);
            await().untilAsserted(() -> assertThat(stored()).isEqualTo(100));

            Sql.execute(ownerPool, "REVOKE DELETE ON eventsql.outbox FROM eventsql_relay");
            publishInTransactions(publisher, pool, 50);
            assertThat(relay.outbox().backlogs().getFirst().events()).isPositive();
            assertThat(stored()).isEqualTo(100);

            Sql.execute(ownerPool, "GRANT DELETE ON eventsql.outbox TO eventsql_relay");
            await().untilAsserted(() -> assertThat(stored()).isEqualTo(150));
        }
    }

    private long stored() throws SQLException {
        return Sql.queryLong(ownerPool, "SELECT count(*) FROM eventsql.events_orders");
    }

    /** Otherwise a missing right would count as a failure of the handler, and dead-letter the event. */
    @Test
    void consumer_exactlyOnceMayNotCommit_isNoFailureOfTheHandler() throws SQLException {
        EventSql consumer = as("eventsql_consumer");
        ConsumerSpec spec = ConsumerSpec.of("orders", "c")
                .withRetry(ONE_ATTEMPT)
                .withFailurePolicy(FailurePolicy.DEAD_LETTER)
                .withDeadLetterStream("orders_dead");
        Handled handled = new Handled();
        try (Subscription ignored = consumer.subscribeTransactional(spec, (event, connection) -> handled.add(event))) {
            publish(owner, 0, 50);
            await().untilAsserted(
                            () -> assertThat(owner.positions("orders", "c")).allMatch(p -> p.nextOffset() == 50));
            Sql.execute(ownerPool, "REVOKE INSERT ON eventsql.consumer_offset FROM eventsql_consumer");
            publish(owner, 50, 100);
            handled.awaitSize(51);
            Sql.execute(ownerPool, "GRANT INSERT ON eventsql.consumer_offset TO eventsql_consumer");
            await().untilAsserted(
                            () -> assertThat(owner.positions("orders", "c")).allMatch(p -> p.nextOffset() == 100));
        }
        assertThat(owner.consumer("orders", "c").parkedEvents(10)).isEmpty();
    }

    private static void publishInTransactions(EventSql publisher, DataSource pool, int events) throws SQLException {
        try (Connection connection = pool.getConnection()) {
            connection.setAutoCommit(false);
            for (int i = 0; i < events; i += 50) {
                publisher.outbox().publishAll(connection, "orders", events(i, i + 50));
                connection.commit();
            }
            connection.setAutoCommit(true);
        }
    }

    @Test
    void reader_readsPositionsAndStates() throws SQLException {
        try (Subscription ignored = owner.subscribe(ConsumerSpec.of("orders", "c"), new Handled()::add)) {
            publish(owner, 0, 150);
            await().untilAsserted(
                            () -> assertThat(owner.positions("orders", "c")).allMatch(p -> p.lag() == 0));
        }
        HikariDataSource pool = login("eventsql_reader");
        EventSql reader = open(pool);
        read(reader, "orders", 150);
        assertThat(reader.positions("orders", "c")).allMatch(position -> position.lag() == 0);
        assertThat(reader.consumer("orders", "c").state()).hasSize(1);
        assertThat(reader.consumer("orders", "c").parkedEvents(10)).isEmpty();
        assertThat(Sql.queryLong(pool, "SELECT sum(lag) FROM eventsql.consumer_lag"))
                .isZero();
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(() -> reader.consumer("orders", "c").pause())
                .withMessageContaining("permission denied");
    }

    @Test
    void owner_clears() throws SQLException {
        publish(as("eventsql_publisher"), 0, 250);
        assertThat(owner.clear("orders", owner.previewClear("orders").confirmation()))
                .isEqualTo(250);
        publish(as("eventsql_publisher"), 250, 400);
    }

    @Test
    void grantOnAStream_isCopiedToNewSegments_andToExistingOnesOnRequest() throws SQLException {
        HikariDataSource report = login();
        String login = Sql.query(report, "SELECT current_user").getFirst();
        Sql.execute(
                ownerPool,
                "GRANT USAGE ON SCHEMA eventsql TO PUBLIC",
                "GRANT SELECT ON eventsql.events_orders TO " + login,
                "REVOKE SELECT ON eventsql.events_orders FROM eventsql_reader");
        EventSql publisher = as("eventsql_publisher");
        publish(publisher, 0, 600);

        assertThat(Sql.queryLong(report, "SELECT count(*) FROM eventsql.events_orders__p0_s5"))
                .isEqualTo(100);
        assertDenied(login("eventsql_reader"), "SELECT FROM eventsql.events_orders__p0_s5");
        assertDenied(report, "SELECT FROM eventsql.events_orders__p0_s0");

        Sql.execute(ownerPool, "SELECT eventsql.apply_stream_grants_v1('orders')");

        assertThat(Sql.queryLong(report, "SELECT count(*) FROM eventsql.events_orders__p0_s0"))
                .isEqualTo(100);
        assertDenied(login("eventsql_reader"), "SELECT FROM eventsql.events_orders__p0_s0");
    }

    @Test
    void rolesFile_appliedAgain_keepsWorking() throws Exception {
        publish(as("eventsql_publisher"), 0, 150);
        Sql.execute(ownerPool, "GRANT DELETE ON eventsql.producer_batch TO eventsql_publisher");

        Roles.apply(database, "eventsql");

        assertDenied(login("eventsql_publisher"), "DELETE FROM eventsql.producer_batch");
        publish(as("eventsql_publisher"), 150, 400);
        read(as("eventsql_reader"), "orders", 400);
    }

    /** One role had owned everything, and streams with events exist. */
    @Test
    void rolesFile_appliedToADatabaseInUse_givesStreamsToTheOwner() throws Exception {
        database = TestCluster.newDatabase();
        try (HikariDataSource first = TestCluster.pool(database);
                EventSql eventSql = open(first)) {
            eventSql.createStream(STREAM.asJson());
            publish(eventSql, 0, 250);
        }

        Roles.apply(database, "eventsql");

        publish(as("eventsql_publisher"), 250, 500);
        HikariDataSource reader = login("eventsql_reader");
        read(open(reader), "orders", 500);
        assertThat(Sql.queryLong(reader, "SELECT count(*) FROM eventsql.events_orders__json"))
                .isEqualTo(500);
    }

    @Test
    void rolesFile_otherSchema_works() throws Exception {
        database = TestCluster.newDatabase();
        Settings settings =
                Settings.builder().schema("my_events").maxBatchEvents(50).build();
        try (HikariDataSource first = TestCluster.pool(database);
                EventSql eventSql = EventSql.builder(first).settings(settings).build()) {
            eventSql.createStream(STREAM);
        }

        Roles.apply(database, "my_events");

        try (EventSql publisher =
                EventSql.builder(login("eventsql_publisher")).settings(settings).build()) {
            publish(publisher, 0, 450);
        }
        try (EventSql reader =
                EventSql.builder(login("eventsql_reader")).settings(settings).build()) {
            read(reader, "orders", 450);
        }
    }

    /** Without a schema before pg_catalog and with pg_temp last, nothing of the caller's is found first. */
    @Test
    void functionsWithRightsOfTheOwner_haveAFixedSearchPath() throws SQLException {
        List<String> definers = Sql.query(ownerPool, """
                SELECT proname || ' ' || coalesce(
                    (SELECT setting FROM unnest(proconfig) AS setting WHERE setting LIKE 'search\\_path=%'), 'none')
                FROM pg_proc
                WHERE pronamespace = 'eventsql'::regnamespace AND prosecdef""");
        assertThat(definers).hasSizeGreaterThan(5).allMatch(one -> one.endsWith(" search_path=pg_catalog, pg_temp"));
        List<String> forAll = Sql.query(ownerPool, """
                SELECT proname FROM pg_proc
                WHERE pronamespace = 'eventsql'::regnamespace AND prosecdef
                  AND (proacl IS NULL OR EXISTS (SELECT FROM aclexplode(proacl) WHERE grantee = 0))""");
        assertThat(Set.of("incarnation_v1", "find_incarnation_v1")).containsAll(forAll);
    }

    /** What a publisher can create is found before the library's objects only where a function does not prevent it. */
    @Test
    void publisher_shadowsNames_changesNothing() throws SQLException {
        String login = Roles.create("eventsql_publisher");
        Sql.execute(
                Roles.admin(database),
                "CREATE SCHEMA evil AUTHORIZATION " + login,
                "ALTER ROLE " + login + " SET search_path = evil, pg_catalog");
        HikariDataSource pool = Roles.pool(database, login);
        opened.add(pool);
        Sql.execute(
                pool,
                "CREATE FUNCTION evil.steal() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN"
                        + " GRANT SELECT ON eventsql.events_orders TO PUBLIC; RETURN true;"
                        + " EXCEPTION WHEN insufficient_privilege THEN RETURN true; END $$",
                "CREATE FUNCTION evil.eq(a int, b int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN"
                        + " PERFORM evil.steal(); RETURN a OPERATOR(pg_catalog.=) b; END $$",
                "CREATE OPERATOR evil.= (LEFTARG = int, RIGHTARG = int, FUNCTION = evil.eq)",
                "CREATE FUNCTION evil.format(text, VARIADIC text[]) RETURNS text LANGUAGE sql"
                        + " AS $$ SELECT 'GRANT SELECT ON eventsql.events_orders TO PUBLIC' $$",
                "CREATE FUNCTION evil.octet_length(text) RETURNS int LANGUAGE sql AS 'SELECT evil.steal()::int'",
                "CREATE FUNCTION evil.hashtext(text) RETURNS int LANGUAGE sql AS 'SELECT evil.steal()::int'");
        try (Connection connection = pool.getConnection();
                var statement = connection.createStatement()) {
            statement.execute(
                    "CREATE TEMPORARY TABLE pg_inherits (inhrelid oid, inhparent oid, inhdetachpending boolean)");
            statement.execute("CREATE TEMPORARY TABLE stream (stream_id int, name text, segment_size bigint)");
            statement.execute("CREATE TEMPORARY TABLE events_orders (x int)");
            statement.execute("SET search_path = evil, pg_temp, pg_catalog");
            try (var row = statement.executeQuery("SELECT eventsql.add_segment_v1(stream_id, 0, 2::bigint)"
                    + " FROM eventsql.stream WHERE name = 'orders'")) {
                row.next();
                assertThat(row.getBoolean(1)).isTrue();
            }
            statement.execute("SET search_path = evil, pg_catalog");
        }
        publish(open(pool), 0, 450);

        assertThat(segments()).contains("eventsql.events_orders__p0_s2");
        assertDenied(login("eventsql_publisher"), "SELECT FROM eventsql.events_orders");
        read(as("eventsql_reader"), "orders", 450);
    }

    @ParameterizedTest
    @ValueSource(strings = {"x\"; DROP TABLE eventsql.shard; --", "x'y", "%I", "O''Reilly; SELECT 1", "a b", "Ä"})
    void hostileStreamName_insertedByHand_isOnlyAName(String name) throws SQLException {
        String inserted = name.replace("'", "''");
        Sql.execute(
                ownerPool,
                "SET ROLE eventsql_owner",
                "INSERT INTO eventsql.stream (name, partitions, segment_size, json) VALUES ('" + inserted
                        + "', 1, 100, false)",
                "INSERT INTO eventsql.stream_partition SELECT stream_id, 0, 0, 1 FROM eventsql.stream WHERE name = '"
                        + inserted + "'",
                "INSERT INTO eventsql.producer_batch SELECT stream_id, 0, 0, 0, gen_random_uuid(), 0, now()"
                        + " FROM eventsql.stream WHERE name = '" + inserted + "'",
                "DO $$ BEGIN EXECUTE format('CREATE TABLE eventsql.%I (LIKE eventsql.events_orders)"
                        + " PARTITION BY LIST (partition)', 'events_' || '" + inserted + "'); END $$",
                "RESET ROLE");
        HikariDataSource publisher = login("eventsql_publisher");

        assertThat(Sql.query(
                        publisher,
                        "SELECT eventsql.add_segment_v1(stream_id, 0, 0) FROM eventsql.stream WHERE name = ?",
                        name))
                .containsExactly("t");

        assertThat(Sql.query(
                        ownerPool, "SELECT count(*) FROM pg_class WHERE relname = ?", "events_" + name + "__p0_s0"))
                .containsExactly("1");
        assertThat(Sql.query(ownerPool, "SELECT count(*) FROM eventsql.shard")).containsExactly("1");
    }

    @Test
    void createStream_invalidName_isRefusedByTheFunction() {
        for (String name : List.of("", "Orders", "a__p0", "a;b", "a\"b", "1a", "a_", "x".repeat(37))) {
            assertThatThrownBy(
                            () -> Sql.query(ownerPool, "SELECT eventsql.create_stream_v1(?, 1, 100, false, 1)", name))
                    .as(name)
                    .isInstanceOfSatisfying(
                            SQLException.class, e -> assertThat(e.getSQLState()).isEqualTo("22023"));
        }
    }

    @Test
    void addSegment_farFromTheHead_isRefused() throws SQLException {
        HikariDataSource publisher = login("eventsql_publisher");
        for (long segment : new long[] {-1, 100_000, Long.MAX_VALUE / 100}) {
            assertThatThrownBy(() -> Sql.query(
                            publisher,
                            "SELECT eventsql.add_segment_v1(stream_id, 0, ?) FROM eventsql.stream WHERE name = 'orders'",
                            segment))
                    .isInstanceOf(SQLException.class);
        }
        assertThat(segments()).hasSize(2);
    }

    /** Goal: a privilege that is missing is named with role and remedy, and granting it is enough. */
    @Test
    void publisher_mayNotAppend_errorNamesRoleObjectAndRemedy_untilGranted() throws SQLException {
        HikariDataSource pool = login("eventsql_reader");
        EventSql publisher = open(pool);
        assertThatExceptionOfType(EventNotStoredException.class)
                .isThrownBy(() -> publisher.publisher().publish("orders", Event.ofText("k", "x")))
                .withMessageContaining("Role login_")
                .withMessageContaining("permission denied for function append_v1")
                .withMessageContaining("eventsql_publisher");

        grant("eventsql_publisher", pool);

        assertThat(publisher
                        .publisher()
                        .publish("orders", Event.ofText("k", "x"))
                        .offset())
                .isZero();
    }

    private void grant(String role, HikariDataSource to) throws SQLException {
        String login = Sql.query(to, "SELECT current_user").getFirst();
        Sql.execute(Roles.admin(database), "GRANT " + role + " TO " + login);
    }

    @Test
    void publisher_mayNotAddSegments_errorNamesFunction_untilGranted() throws SQLException {
        Sql.execute(ownerPool, "REVOKE EXECUTE ON FUNCTION eventsql.add_segment_v1 FROM eventsql_publisher");
        EventSql publisher = as("eventsql_publisher");
        publish(publisher, 0, 200);
        assertThatExceptionOfType(EventNotStoredException.class)
                .isThrownBy(() -> publish(publisher, 200, 250))
                .withMessageContaining("Role login_")
                .withMessageContaining("permission denied for function add_segment_v1")
                .withMessageContaining("eventsql_publisher");

        Sql.execute(ownerPool, "GRANT EXECUTE ON FUNCTION eventsql.add_segment_v1 TO eventsql_publisher");

        publish(publisher, 200, 450);
        read(as("eventsql_reader"), "orders", 450);
    }

    @Test
    void consumer_mayNotConsume_startsWhenGranted() throws SQLException {
        publish(owner, 0, 150);
        HikariDataSource pool = login("eventsql_reader");
        EventSql consumer = open(pool);
        Handled handled = new Handled();
        try (Subscription ignored = consumer.subscribe(ConsumerSpec.of("orders", "c"), handled::add)) {
            grant("eventsql_consumer", pool);
            handled.awaitSize(150).assertOnceAndInOrder();
        }
    }

    @Test
    void consumer_losesARightWhileItRuns_continuesWhenGranted() throws SQLException {
        EventSql consumer = as("eventsql_consumer");
        Handled handled = new Handled();
        try (Subscription ignored = consumer.subscribe(ConsumerSpec.of("orders", "c"), handled::add)) {
            publish(owner, 0, 50);
            handled.awaitSize(50);
            Sql.execute(
                    ownerPool,
                    "REVOKE SELECT ON eventsql.events_orders FROM eventsql_consumer",
                    "SELECT eventsql.apply_stream_grants_v1('orders')");
            publish(owner, 50, 150);
            Sql.execute(
                    ownerPool,
                    "GRANT SELECT ON eventsql.events_orders TO eventsql_consumer",
                    "SELECT eventsql.apply_stream_grants_v1('orders')");
            handled.awaitSize(150).assertOnceAndInOrder();
        }
    }

    @Test
    void subscribe_deadLetterStreamIsMissing_errorNamesRoleAndRemedy() throws SQLException {
        EventSql consumer = as("eventsql_consumer");
        ConsumerSpec spec = ConsumerSpec.of("orders", "c")
                .withFailurePolicy(FailurePolicy.DEAD_LETTER)
                .withDeadLetterStream("missing");
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(() -> consumer.subscribe(spec, event -> {}))
                .withMessageContaining("missing")
                .withMessageContaining("Role login_")
                .withMessageContaining("create_stream_v1");

        owner.createStream(DEAD_LETTERS.withPartitions(1));
        assertThatCode(() -> consumer.subscribe(spec.withDeadLetterStream("orders_dead"), event -> {})
                        .close())
                .doesNotThrowAnyException();
    }

    @Test
    void createStream_existingStream_needsNoRight() throws SQLException {
        as("eventsql_publisher").createStream(STREAM);
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(() -> as("eventsql_publisher").createStream(StreamSpec.of("more")))
                .withMessageContaining("more")
                .withMessageContaining("permission denied for function create_stream_v1");
    }
}
