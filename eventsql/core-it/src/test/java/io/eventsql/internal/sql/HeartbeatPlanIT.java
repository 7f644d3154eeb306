package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventSql;
import io.eventsql.StartPosition;
import io.eventsql.StreamSpec;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.internal.sql.LeaseTable.HeartbeatRequest;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/**
 * Goal: what members call again and again is not planned each time. Method: pg_stat_statements counts the plans of the statements in
 * the functions, called on one connection.
 */
class HeartbeatPlanIT {
    private static final int CALLS = 20;
    private static final int PARTITIONS = 10;
    private static final Duration LEASE = Duration.ofSeconds(30);

    @Test
    void heartbeatAndParkedKeys_calledAgain_areNotPlannedAgain() throws SQLException {
        try (EventsDb server = EmbeddedEventsDb.builder()
                        .setting("shared_preload_libraries", "pg_stat_statements")
                        .setting("pg_stat_statements.track", "all")
                        .setting("pg_stat_statements.track_planning", "on")
                        .start();
                HikariDataSource pool = TestCluster.pool(server.dataSource());
                EventSql eventSql = EventSql.builder(pool).build();
                Connection connection = server.dataSource().getConnection()) {
            eventSql.createStream(StreamSpec.of("orders").withPartitions(PARTITIONS));
            SqlSchema schema = new SqlSchema("eventsql");
            int streamId = (int) Sql.queryLong(pool, "SELECT stream_id FROM eventsql.stream");
            int consumer =
                    new ConsumerTable(schema).register(connection, streamId, "orders", "c", StartPosition.EARLIEST);
            LeaseTable leases = new LeaseTable(schema);
            UUID member = UUID.randomUUID();
            List<Integer> partitions = IntStream.range(0, PARTITIONS).boxed().toList();
            Sql.execute(
                    server.adminDataSource(),
                    "CREATE EXTENSION pg_stat_statements",
                    "SELECT pg_stat_statements_reset()"); // forgets what creating the stream has called as often
            for (int call = 0; call < CALLS; call++) {
                List<Integer> held = partitions.subList(0, call % PARTITIONS);
                leases.heartbeat(
                        connection,
                        null,
                        0,
                        LEASE,
                        List.of(new HeartbeatRequest(consumer, member, "host/1/1", PARTITIONS, held)));
                Sql.query(connection, "SELECT * FROM eventsql.parked_keys_v1(" + consumer + ", '{0," + call + "}')");
                Sql.query(
                        connection,
                        "SELECT * FROM eventsql.used_before_move_v1(" + consumer + ", 0, '{0," + call + "}')");
            }
            String repeated = "SELECT plans || ' plans in ' || calls || ' calls: ' || query FROM pg_stat_statements"
                    + " WHERE NOT toplevel AND calls = " + CALLS;
            assertThat(Sql.query(server.adminDataSource(), repeated)).hasSizeGreaterThanOrEqualTo(8);
            assertThat(Sql.query(server.adminDataSource(), repeated + " AND plans > 2"))
                    .isEmpty();
        }
    }
}
