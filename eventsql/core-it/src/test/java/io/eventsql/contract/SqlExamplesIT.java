package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.DocumentedSql;
import io.eventsql.fixture.Roles;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Goal: the statements of docs/sql.md work, and read no segment that they do not need. Method: they are taken from the page.
 * Each of two shards has a stream of 60 segments with 100 events; each event is 6 s older than the next one of its partition,
 * so the last hour is in 12 or 14 of the segments.
 */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(120)
class SqlExamplesIT {
    private static final int PARTITIONS = 2;
    private static final int EVENTS = 3_000;
    private static final int PROBED_SEGMENTS_MAX = 12;

    private TestCluster cluster;

    @BeforeAll
    void publish() throws SQLException {
        cluster = TestCluster.ofShards(2);
        try (EventSql eventSql = cluster.open(settings -> settings.maxBatchEvents(500))) {
            eventSql.createStream(
                    StreamSpec.of("orders").withPartitions(PARTITIONS).withSegmentSize(100));
            int key = 0;
            while (cluster.sum("SELECT count(*) FROM eventsql.partition_head WHERE next_offset < " + EVENTS) > 0) {
                int from = key;
                eventSql.publisher()
                        .publishAll(
                                "orders",
                                IntStream.range(from, from + 500)
                                        .mapToObj(i -> Event.ofText("key " + i, "event " + i))
                                        .toList());
                key += 500;
            }
        }
        cluster.execute("UPDATE eventsql.events_orders SET published_at = now() - interval '30 s'" + " - greatest(0, "
                + (EVENTS - 1) + " - event_offset) * interval '6 s'");
    }

    @AfterAll
    void closeCluster() {
        cluster.close();
    }

    private DataSource shard(int number) {
        return cluster.dataSources().get(number);
    }

    private static String block(String text) throws IOException {
        return DocumentedSql.block("sql.md", text);
    }

    @Test
    void conditionOnOffsets_planHasOnlyTheirSegments() throws Exception {
        String query = block("event_offset < 1100\nORDER BY");
        assertThat(Sql.query(shard(0), query.replace(";", ""))).hasSize(100);
        assertThat(Sql.query(shard(0), "EXPLAIN " + query).stream()
                        .filter(line -> line.matches(".* on events_orders__p\\d+_s\\d+ .*")))
                .as("scans")
                .hasSize(1);
    }

    @Test
    void offsetAt_eachPartition_isTheFirstOfThePeriod() throws Exception {
        try (Connection connection = shard(0).getConnection()) {
            connection.setAutoCommit(false); // now() is that of the transaction
            assertThat(Sql.query(
                            connection,
                            "SELECT first_offset FROM ("
                                    + block("AS first_offset").replace(";", "") + ") AS offsets"))
                    .containsExactlyElementsOf(Sql.query(
                            connection,
                            "SELECT min(event_offset) FROM eventsql.events_orders"
                                    + " WHERE published_at >= now() - interval '1 hour'"
                                    + " GROUP BY partition ORDER BY partition"))
                    .allSatisfy(offset -> assertThat(Long.parseLong(offset)).isBetween(2_000L, 2_500L));
            connection.rollback();
        }
    }

    @Test
    void eventsBetween_lastHour_readsOnlyItsSegments() throws Exception {
        String query = block("GROUP BY key").replace(";", "");
        try (Connection connection = shard(0).getConnection()) {
            connection.setAutoCommit(false);
            List<String> found = Sql.query(connection, "SELECT sum(events) FROM (" + query + ") AS counted");
            List<String> locked = Sql.query(
                    connection,
                    "SELECT c.relname::text FROM pg_locks l JOIN pg_class c ON c.oid = l.relation"
                            + " WHERE l.pid = pg_backend_pid() AND c.relname ~ '^events_orders.*_s[0-9]+$'");
            assertThat(locked)
                    .as("segments of the last hour, and those that the search has probed")
                    .hasSizeBetween(12, segmentsFrom(2_400) + PROBED_SEGMENTS_MAX)
                    .hasSizeLessThan(segmentsFrom(0) / 2);
            assertThat(found)
                    .containsExactlyElementsOf(Sql.query(
                            connection,
                            "SELECT count(*) FROM eventsql.events_orders"
                                    + " WHERE published_at >= now() - interval '1 hour'"));
            connection.rollback();
        }
    }

    private int segmentsFrom(long offset) throws SQLException {
        return (int) Sql.queryLong(
                shard(0),
                "SELECT count(*) FROM eventsql.segment g JOIN eventsql.partition_head h USING (partition)"
                        + " WHERE g.first_offset < h.next_offset AND g.end_offset > " + offset);
    }

    @Test
    void eventsBetween_anyPeriod_isExactlyThatOfTheTable() throws SQLException {
        for (String period : List.of(
                "now() - interval '100 minutes', now() - interval '40 minutes'",
                "now() - interval '1 year', now() - interval '280 minutes'",
                "now() - interval '1 minute', 'infinity'",
                "'-infinity', 'infinity'",
                "now(), now() - interval '1 hour'")) {
            String[] bounds = period.split(", ");
            assertThat(Sql.query(
                            shard(0),
                            "SELECT partition || ':' || event_offset || key FROM eventsql.events_between_v1('orders', "
                                    + period + ")"))
                    .as(period)
                    .containsExactlyElementsOf(Sql.query(
                            shard(0),
                            "SELECT partition || ':' || event_offset || key FROM eventsql.events_orders WHERE"
                                    + " published_at >= " + bounds[0] + " AND published_at < " + bounds[1]
                                    + " ORDER BY partition, event_offset"));
        }
        assertThatExceptionOfType(SQLException.class)
                .isThrownBy(() -> Sql.query(
                        shard(0), "SELECT key FROM eventsql.events_between_v1('payments', '-infinity', 'infinity')"))
                .withMessageContaining("stream payments does not exist");
    }

    @Test
    void crossShardView_showsAllShards() throws Exception {
        DataSource admin = admin(0);
        assumeThat(Sql.query(admin, "SELECT name FROM pg_available_extensions WHERE name = 'postgres_fdw'"))
                .as("skipped: the server has no extension postgres_fdw (part of postgresql-contrib)")
                .isNotEmpty();
        PGSimpleDataSource other = (PGSimpleDataSource) admin(1);
        Sql.execute(
                admin,
                block("CREATE EXTENSION")
                        .replace("shard1.example.com", other.getServerNames()[0])
                        .replace("5432", Integer.toString(other.getPortNumbers()[0]))
                        .replace("'events'", "'" + other.getDatabaseName() + "'")
                        .replace("'reporting'", "'" + other.getUser() + "'")
                        .replace("'secret'", "'" + other.getPassword() + "'"));
        for (int shard = 0; shard < 2; shard++) {
            Sql.execute(admin(shard), block("CREATE VIEW reporting.orders_of_last_hour"));
        }
        Sql.execute(admin, block("LIMIT TO (orders_of_last_hour)"));

        assertThat(Sql.queryLong(admin, "SELECT count(*) FROM public.all_orders"))
                .isEqualTo(cluster.sum("SELECT count(*) FROM eventsql.events_orders"));
        assertThat(Sql.query(admin, "SELECT DISTINCT shard FROM public.all_orders ORDER BY shard"))
                .containsExactly("0", "1");
        String range = block("FROM public.all_orders\n");
        assertThat(Sql.query(admin, range.replace(";", ""))).hasSize(200);
        assertThat(String.join("\n", Sql.query(admin, "EXPLAIN (VERBOSE) " + range)))
                .as("conditions are evaluated on the other shard")
                .containsPattern("Remote SQL: .*event_offset >= 1000.*event_offset < 1100.*partition = 0");
        // At another moment on each shard: at most a few events of each partition have left the hour since.
        long lastHour = cluster.sum(
                "SELECT count(*) FROM eventsql.events_orders WHERE published_at >= now() - interval '1 hour'");
        assertThat(Sql.queryLong(admin, "SELECT count(*) FROM public.all_orders_of_last_hour"))
                .isBetween(lastHour - 2 * PARTITIONS * 20, lastHour);
        assertThat(Sql.query(admin, "SELECT DISTINCT shard FROM public.all_orders_of_last_hour ORDER BY shard"))
                .containsExactly("0", "1");
    }

    private DataSource admin(int shard) throws SQLException {
        return Roles.admin(shard(shard).unwrap(PGSimpleDataSource.class));
    }
}
