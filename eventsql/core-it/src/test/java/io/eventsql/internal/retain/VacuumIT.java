package io.eventsql.internal.retain;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.EventSql;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.sql.SQLException;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Goal: a vacuum never truncates the file of a table that is written to all the time, because that takes an ACCESS
 * EXCLUSIVE lock, which queues publishers and cancels queries on standbys. Method: a table gets many rows, loses them, and
 * is vacuumed: its file keeps its size. Without the setting it shrinks.
 */
@Timeout(120)
class VacuumIT {
    private static TestCluster cluster;
    private static DataSource database;

    @BeforeAll
    static void createStream() {
        cluster = TestCluster.ofShards(1);
        database = cluster.dataSources().getFirst();
        try (EventSql eventSql = cluster.open()) {
            eventSql.createStream(StreamSpec.of("orders").withPartitions(1));
        }
    }

    @AfterAll
    static void close() {
        cluster.close();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "producer_batch | (stream_id, partition, next_offset, base_offset, producer_id, batch_number, published_at)"
                        + " SELECT 1, 0, n, n, gen_random_uuid(), n, now() | base_offset > 0",
                "stream_partition | (stream_id, partition, map_version) SELECT 1, n, 1 | partition > 0",
                "consumer_offset | (consumer_id, partition, commit_number, next_offset, epoch, consumed_events, committed_at)"
                        + " SELECT 1, 0, n, n, 0, 0, now() | true",
                "outbox_1 | (ring, stream, value, routing_hash) SELECT 1, 'orders', '', 0 | true",
                "outbox_transfer | (shard, producer_id, stream, partition, value, written_at)"
                        + " SELECT 1, gen_random_uuid(), 'orders', 0, '', now() | true",
                "events_orders__p0_s0 | (partition, event_offset, value, published_at) SELECT 0, n, '', now() | true"
            })
    void vacuum_afterManyDeletes_doesNotTruncate(String table, String rows, String deleted) throws SQLException {
        Sql.execute(
                database,
                "INSERT INTO eventsql." + table + " " + rows + " FROM generate_series(1, 20000) AS n",
                "DELETE FROM eventsql." + table + " WHERE " + deleted);
        long before = bytes(table);

        Sql.execute(database, "VACUUM eventsql." + table);

        assertThat(before).isGreaterThan(200_000);
        assertThat(bytes(table)).isEqualTo(before);
    }

    private long bytes(String table) throws SQLException {
        return Sql.queryLong(database, "SELECT pg_relation_size('eventsql." + table + "')");
    }

    @Test
    void hotTables_areNeverTruncatedByVacuum() throws SQLException {
        assertThat(Sql.query(database, """
                        SELECT relname FROM pg_class
                        WHERE relnamespace = 'eventsql'::regnamespace AND relkind = 'r'
                          AND 'vacuum_truncate=false' = ANY (reloptions) AND relname NOT LIKE 'events\\_%'"""))
                .contains(
                        "producer_batch",
                        "stream_partition",
                        "consumer_offset",
                        "consumer_partition",
                        "consumer_member",
                        "outbox_0",
                        "outbox_1",
                        "outbox_2",
                        "outbox_3",
                        "outbox_transfer",
                        "outbox_relay");
    }
}
