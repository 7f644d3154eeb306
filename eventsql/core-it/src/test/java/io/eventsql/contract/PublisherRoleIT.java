package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.ExpectedVersion;
import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import io.eventsql.VersionConflictException;
import io.eventsql.fixture.Roles;
import io.eventsql.fixture.Sql;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Goal: a publisher can publish and add segments, and nothing else. Segments have 100 events, so that segments are added all
 * the time.
 */
class PublisherRoleIT extends RolesFixture {
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
    @EnumSource
    void publisher_versionExpected_isComparedAndReaderReadsTheKey(Storage storage) throws SQLException {
        owner.createStream(
                StreamSpec.of("accounts").withPartitions(1).withStorage(storage).withKeyIndex());
        DataSource login = login("eventsql_publisher");
        EventSql publisher = as("eventsql_publisher");
        publisher.publisher().publish("accounts", Event.ofText("a", "1"), ExpectedVersion.NONE);
        try (Connection transaction = login.getConnection()) {
            transaction.setAutoCommit(false);
            publisher.outbox().publish(transaction, "accounts", Event.ofText("a", "2"), ExpectedVersion.of(1));
            transaction.commit();
        }
        as("eventsql_relay");
        await().until(() -> publisher.keyVersion("accounts", "a") == 2);
        assertThatExceptionOfType(VersionConflictException.class)
                .isThrownBy(
                        () -> publisher.publisher().publish("accounts", Event.ofText("a", "3"), ExpectedVersion.of(1)));
        assertThat(as("eventsql_reader").readKey("accounts", "a").events()).hasSize(2);
    }

    @Test
    void publisher_ofASink_appendsOnce() throws SQLException {
        HikariDataSource login = login("eventsql_publisher");
        String append = """
                SELECT eventsql.append_sink_v1(
                    'totals', '00000000-0000-0000-0000-000000000001', 1, p.map_version, NULL, 0, s.name, s.stream_id, 0,
                    ARRAY['k'], ARRAY['v'::bytea], ARRAY[NULL]::text[])
                FROM eventsql.stream s JOIN eventsql.stream_partition p USING (stream_id)
                WHERE s.name = 'orders' AND p.partition = 0""";
        assertThat(Sql.query(login, append)).containsExactly("t");
        assertThat(Sql.query(login, append)).containsExactly("f");
        assertThat(Sql.query(login, "SELECT sink FROM eventsql.sink_producer")).containsExactly("totals");
        assertThat(Sql.queryLong(ownerPool, "SELECT count(*) FROM eventsql.events_orders"))
                .isEqualTo(1);
    }

    @Test
    void publisher_readsDropsOrAlters_isDenied() throws SQLException {
        publish(owner, 0, 10);
        assertDenied(
                login("eventsql_publisher"),
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
                "DELETE FROM eventsql.sink_producer",
                "SELECT eventsql.delete_sink_v1('orders')",
                "UPDATE eventsql.stream_partition SET log_start = 1",
                "UPDATE eventsql.stream SET name = 'other'",
                "UPDATE eventsql.shard SET map_version = 2",
                "DELETE FROM eventsql.outbox",
                "SELECT eventsql.create_stream_v1('mine', 1, 100, false, 1)",
                "SELECT eventsql.create_partitions_v1(1, 1)",
                "SELECT eventsql.start_at_head_v1(1, 0)",
                "SELECT eventsql.apply_stream_grants_v1('orders')",
                "GRANT SELECT ON eventsql.events_orders TO PUBLIC",
                "SET ROLE eventsql_owner");
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
            try (var row = statement.executeQuery("SELECT eventsql.add_segment_v1(NULL, stream_id, 0, 2::bigint)"
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

    /** Also a process that only publishes reports the lag of consumers whose members are dead. */
    @Test
    void publisher_reportsConsumers_withoutReadingThem() throws SQLException {
        owner.subscribe(ConsumerSpec.of("orders", "mailer"), event -> {}).close();
        publish(owner, 0, 150);
        EventSql publisher = as("eventsql_publisher");

        assertThat(publisher.reportConsumers(0, 10, Duration.ofMinutes(1)).orElseThrow())
                .singleElement()
                .satisfies(summary -> {
                    assertThat(summary.lag()).isEqualTo(150);
                    assertThat(summary.behind()).isPositive();
                });
        assertThat(as("eventsql_reader").consumers().consumers()).hasSize(1);
        assertThat(publisher.consumers().unavailableShards().values())
                .singleElement()
                .asString()
                .contains("lacks a privilege");
        assertDenied(login("eventsql_publisher"), "UPDATE eventsql.consumer_reporter SET reporter_id = NULL");
        publisher.close();
        assertThat(as("eventsql_reader").reportConsumers(0, 10, Duration.ofMinutes(1)))
                .isPresent();
    }

    @Test
    void addSegment_farFromTheHead_isRefused() throws SQLException {
        HikariDataSource publisher = login("eventsql_publisher");
        for (long segment : new long[] {-1, 100_000, Long.MAX_VALUE / 100}) {
            assertThatThrownBy(() -> Sql.query(
                            publisher,
                            "SELECT eventsql.add_segment_v1(NULL, stream_id, 0, ?) FROM eventsql.stream WHERE name = 'orders'",
                            segment))
                    .isInstanceOf(SQLException.class);
        }
        assertThat(segments()).hasSize(2);
    }

    @Test
    void createStream_existingStream_needsNoRight() throws SQLException {
        as("eventsql_publisher").createStream(STREAM);
        assertThatExceptionOfType(EventSqlException.class)
                .isThrownBy(() -> as("eventsql_publisher").createStream(StreamSpec.of("more")))
                .withMessageContaining("more")
                .withMessageContaining("permission denied for function slots_of_new_stream_v1");
    }

    /** As docs/security.md says. */
    @Test
    void createStream_withTheRightToExecuteItsFunctions_itsTablesBelongToTheOwner() throws SQLException {
        Sql.execute(
                ownerPool,
                "GRANT EXECUTE ON FUNCTION eventsql.slots_of_new_stream_v1, eventsql.create_keyed_stream_v1,"
                        + " eventsql.close_new_stream_v1, eventsql.create_partitions_v1 TO eventsql_publisher");
        EventSql publisher = as("eventsql_publisher");
        publisher.createStream(StreamSpec.of("more").withPartitions(2));
        publisher.publisher().publish("more", Event.ofText("k", "v"));
        assertThat(Sql.query(
                        ownerPool,
                        "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'eventsql' AND tablename LIKE"
                                + " 'events_more%'"))
                .containsExactly("eventsql_owner");
    }
}
