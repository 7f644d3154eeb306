package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.EventSql;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Plans;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.sql.Connection;
import java.sql.SQLException;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;

/**
 * Goal: an old snapshot does not make batches of several streams and their fetches more expensive with every batch. Method: while a
 * REPEATABLE READ transaction stays open, batches with an event in each of two streams are appended; the blocks that the last one and
 * a fetch read are compared with those of the first. Halfway a vacuum, which can remove nothing, tells the planner how few rows are
 * alive.
 */
class StreamsPlanIT {
    private static final int BATCHES = 1_000;
    private static final int STREAMS = 2;

    @Test
    void severalStreams_oldSnapshotOpen_costNoMoreWithEveryBatch() throws SQLException {
        try (TestCluster cluster = TestCluster.ofShards(1)) {
            EventSql eventSql = cluster.open();
            eventSql.createStream(StreamSpec.of("first").withPartitions(1));
            eventSql.createStream(StreamSpec.of("second").withPartitions(1));
            DataSource database = cluster.dataSources().getFirst();
            String ids = Sql.query(database, "SELECT array_agg(stream_id ORDER BY name) FROM eventsql.stream")
                    .getFirst();
            try (Connection old = database.getConnection();
                    Connection connection = database.getConnection()) {
                old.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
                old.setAutoCommit(false);
                Sql.query(old, "SELECT count(*) FROM eventsql.producer_batch");

                int number = append(connection, ids, 1, 20);
                long appendBefore = Plans.blocks(connection, append(ids, number++));
                long fetchBefore = Plans.blocks(connection, fetch(ids, number - 2));
                number = append(connection, ids, number, BATCHES / 2);
                Sql.execute(database, "VACUUM ANALYZE eventsql.producer_batch");
                number = append(connection, ids, number, BATCHES);
                long appendAfter = Plans.blocks(connection, append(ids, number++));
                assertThat(Sql.query(connection, fetch(ids, number - 2))).containsExactly("" + STREAMS);
                long fetchAfter = Plans.blocks(connection, fetch(ids, number - 2));
                old.rollback();

                assertThat(appendAfter)
                        .as("an append to two partitions, %d at first", appendBefore)
                        .isLessThanOrEqualTo(appendBefore + 20L * STREAMS);
                assertThat(fetchAfter)
                        .as("a fetch from two partitions, %d at first", fetchBefore)
                        .isLessThanOrEqualTo(fetchBefore + 10L * STREAMS);
            }
        }
    }

    private static int append(Connection connection, String ids, int from, int to) throws SQLException {
        for (int number = from; number < to; number++) {
            int offset = number - 1;
            assertThat(Sql.query(connection, append(ids, number))).containsExactly(("{" + offset + "," + offset + "}"));
        }
        return to;
    }

    private static String append(String ids, int number) {
        return "SELECT eventsql.append_v1('00000000-0000-0000-0000-000000000001', " + number
                + ", 1, NULL, 0, '{first,second}', '" + ids + "', '{0,0}', '{1,1}', '{1,2}', '{0,0}', '{k,k}',"
                + " '{v,v}', '{NULL,NULL}')";
    }

    /** Fetches one event of each stream. */
    private static String fetch(String ids, int offset) {
        return "SELECT count(*) FROM eventsql.fetch_streams_v1(NULL, '" + ids + "', '{first,second}', '{0,0}', '{"
                + offset + "," + offset + "}', '{1,1}', '{100000,100000}')";
    }
}
