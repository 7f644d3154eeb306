package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventSqlException;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Roles;
import io.eventsql.fixture.Sql;
import java.sql.Connection;
import java.sql.SQLException;
import org.junit.jupiter.api.Test;

/** Goal: publishers, consumers and readers have no rights that they do not need, also where PUBLIC may execute functions. */
class DeniedStatementsIT extends RolesFixture {
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
        publish(open(pool), 0, 250);

        assertThat(segments()).contains("eventsql.events_orders__p0_s2");
        assertDenied(login("eventsql_publisher"), "SELECT FROM eventsql.events_orders");
        read(as("eventsql_reader"), "orders", 250);
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

    @Test
    void consumer_writesEventsOrAlters_isDenied() throws SQLException {
        publish(owner, 0, 10);
        assertDenied(
                login("eventsql_consumer"),
                "INSERT INTO eventsql.events_orders VALUES (0, 0, 'k', '', NULL, now())",
                "DELETE FROM eventsql.events_orders__p0_s0",
                "DROP TABLE eventsql.events_orders__p0_s0",
                "DELETE FROM eventsql.producer_batch",
                "UPDATE eventsql.stream_partition SET log_start = 1",
                "SELECT * FROM eventsql.outbox",
                "INSERT INTO eventsql.outbox (ring, stream, value, routing_hash) VALUES (0, 'orders', '', 1)",
                "SELECT eventsql.create_stream_v1('mine', 1, 100, false, 1)");
    }

    @Test
    void reader_writes_isDenied() throws SQLException {
        publish(owner, 0, 10);
        assertDenied(
                login("eventsql_reader"),
                "DELETE FROM eventsql.events_orders__p0_s0",
                "INSERT INTO eventsql.consumer (stream_id, name) VALUES (1, 'c')",
                "DELETE FROM eventsql.consumer_offset",
                "DELETE FROM eventsql.parked_event",
                "SELECT eventsql.add_segment_v1(NULL, 1, 0, 2)",
                "SELECT eventsql.delete_dead_producers_v1(gen_random_uuid())",
                "SELECT * FROM eventsql.outbox");
    }

    @Test
    void replica_publisher_mayNotWriteForIt() throws SQLException {
        assertDenied(
                login("eventsql_publisher"),
                "SELECT eventsql.record_incarnation_v1(eventsql.incarnation_v1(), interval '1 s')");
    }
}
