package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.EventSql;
import io.eventsql.StartPosition;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Plans;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.internal.sql.OffsetTable.Handled;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;

/**
 * Goal: an old snapshot does not make offset commits and reading offsets more expensive with every commit. Method:
 * while a REPEATABLE READ transaction stays open, each of ten partitions is committed 1,000 times; the blocks the last
 * commit reads are compared with those of the first. Halfway a vacuum, which can remove nothing, tells the planner how
 * few rows are alive.
 */
class OffsetPlanIT {
    private static final int PARTITIONS = 10;
    private static final int COMMITS = 1_000;

    @Test
    void commit_oldSnapshotOpen_costsNoMoreWithEveryCommit() throws SQLException {
        try (TestCluster cluster = TestCluster.ofShards(1)) {
            EventSql eventSql = cluster.open();
            eventSql.createStream(StreamSpec.of("hot").withPartitions(PARTITIONS));
            DataSource database = cluster.dataSources().getFirst();
            SqlSchema schema = new SqlSchema("eventsql");
            try (Connection old = database.getConnection();
                    Connection connection = database.getConnection()) {
                int streamId = (int) Sql.queryLong(database, "SELECT stream_id FROM eventsql.stream");
                int consumer =
                        new ConsumerTable(schema).register(connection, streamId, "hot", "c", StartPosition.EARLIEST);
                old.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
                old.setAutoCommit(false);
                Sql.query(old, "SELECT count(*) FROM eventsql.consumer_offset");

                OffsetTable offsets = new OffsetTable(schema);
                long next = commit(offsets, connection, consumer, 0, 20);
                long commitBefore = commitBlocks(connection, consumer, next++);
                long readBefore = Plans.blocks(connection, look(consumer));
                next = commit(offsets, connection, consumer, next, COMMITS / 2);
                Sql.execute(database, "VACUUM ANALYZE eventsql.consumer_offset");
                next = commit(offsets, connection, consumer, next, COMMITS);
                long readAfter = Plans.blocks(connection, look(consumer));
                long commitAfter = commitBlocks(connection, consumer, next);
                old.rollback();

                assertThat(commitAfter)
                        .as("commit of ten partitions, %d at first", commitBefore)
                        .isLessThanOrEqualTo(commitBefore + 10L * PARTITIONS);
                assertThat(readAfter)
                        .as("reading offsets, %d at first", readBefore)
                        .isLessThanOrEqualTo(readBefore + 5L * PARTITIONS);
            }
        }
    }

    /** Commits all partitions from one offset to the next, until an offset. */
    private static long commit(OffsetTable offsets, Connection connection, int consumer, long from, long to)
            throws SQLException {
        Integer[] all = IntStream.range(0, PARTITIONS).boxed().toArray(Integer[]::new);
        for (long next = from; next < to; next++) {
            long offset = next;
            List<Handled> handled = IntStream.range(0, PARTITIONS)
                    .mapToObj(partition -> new Handled(partition, 0, offset, offset + 1, 1))
                    .toList();
            assertThat(offsets.commit(connection, null, consumer, handled)).isEqualTo(Set.of(all));
        }
        return to;
    }

    private static long commitBlocks(Connection connection, int consumer, long from) throws SQLException {
        String partitions = array(0, 1);
        String consumers = array(consumer, 0);
        return Plans.blocks(
                connection,
                "SELECT * FROM eventsql.commit_offsets_v2(NULL, " + consumers + ", " + partitions + ", " + array(0, 0)
                        + ", " + array(from, 0) + ", " + array(from + 1, 0) + ", " + array(1, 0) + ")");
    }

    private static String array(long first, int step) {
        return "ARRAY"
                + IntStream.range(0, PARTITIONS)
                        .mapToObj(i -> first + (long) i * step)
                        .toList();
    }

    private static String look(int consumer) {
        return "SELECT * FROM eventsql.consumer_offsets_v1(NULL, " + consumer + ")";
    }
}
