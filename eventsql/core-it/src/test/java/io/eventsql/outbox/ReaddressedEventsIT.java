package io.eventsql.outbox;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.internal.sql.AppendStatement;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.MapFence;
import io.eventsql.internal.sql.SqlSchema;
import io.eventsql.internal.sql.TransferTable;
import io.eventsql.internal.sql.TransferTable.StreamKey;
import io.eventsql.internal.sql.TransferredAppend;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Events in the transfer table whose keys belong to other shards than these events are addressed to. */
@Timeout(120)
class ReaddressedEventsIT {
    private static final String STREAM = "orders";

    private final TestCluster cluster = TestCluster.ofShards(2);
    private final SqlSchema schema = new SqlSchema("eventsql");

    @AfterEach
    void close() {
        cluster.close();
    }

    private EventSql open(DataSource application) {
        return EventSql.builder(cluster.dataSources()).outbox(application).build();
    }

    /**
     * After the database of an outbox was restored with loss, the outbox has a new producer and repeats numbers. A shard may have
     * stored greater ones of the former producer: an event that got a new number under that one counted as stored, and was removed.
     */
    @Test
    void send_shardHasGreaterNumbersOfAFormerProducer_eventIsStored() throws SQLException {
        UUID former = UUID.randomUUID();
        try (HikariDataSource application = TestCluster.pool(TestCluster.newDatabase())) {
            String key;
            try (EventSql before = open(application)) {
                before.createStream(StreamSpec.of(STREAM).withPartitions(1));
                key = keyOfShard1(before);
            }
            String outbox = Sql.query(application, "SELECT outbox_id FROM eventsql.outbox_relay")
                    .getFirst();
            storeOnShard1(UUID.fromString(outbox), former);
            Sql.query(
                    application,
                    "INSERT INTO eventsql.outbox_transfer (shard, producer_id, stream, partition, key, value, written_at)"
                            + " VALUES (0, ?, '" + STREAM + "', 0, ?, 'waited', now()) RETURNING number",
                    former,
                    key);
            try (EventSql after = open(application)) {
                await().until(() -> Sql.queryLong(application, "SELECT count(*) FROM eventsql.outbox_transfer") == 0);
                assertThat(after.outbox().backlogs()).hasSize(3);
            }
        }
        assertThat(texts(cluster.dataSources().get(1))).contains("sent", "waited");
    }

    private static String keyOfShard1(EventSql eventSql) {
        for (int i = 0; ; i++) {
            if (eventSql.publisher().publish(STREAM, Event.ofText("k" + i, "1")).shard() == 1) {
                return "k" + i;
            }
        }
    }

    /** Stores an event of the outbox on the second shard, under a number that no later one of this test reaches. */
    private void storeOnShard1(UUID outbox, UUID producer) throws SQLException {
        DataSource shard = cluster.dataSources().get(1);
        int id = (int) Sql.queryLong(shard, "SELECT stream_id FROM eventsql.stream WHERE name = '" + STREAM + "'");
        TransferredAppend transferred = new TransferredAppend(schema);
        Database database = new Database(shard, Duration.ofSeconds(10));
        database.call(c -> transferred.registerOutbox(c, null, outbox, producer, new int[] {id}));
        AppendStatement.Rows rows = new AppendStatement.Rows(
                new String[] {STREAM},
                new int[] {id},
                new int[] {0},
                new int[] {1},
                new String[1],
                new byte[][] {"sent".getBytes(StandardCharsets.UTF_8)},
                new String[1]);
        database.call(c -> transferred.execute(
                c,
                producer,
                MapFence.of(1),
                null,
                rows,
                Collections.singletonList(null),
                List.of(1_000_000L),
                List.of()));
    }

    private static List<String> texts(DataSource shard) throws SQLException {
        return Sql.query(shard, "SELECT convert_from(value, 'UTF8') FROM eventsql.events_" + STREAM);
    }

    /** Each page of the relay asks, while it holds the relay's row: events of other keys must not cost anything. */
    @Test
    void shardsOfKeys_manyEventsWait_readsThoseOfTheKeysAlone() throws SQLException {
        try (HikariDataSource application = TestCluster.pool(TestCluster.newDatabase());
                Connection connection = application.getConnection()) {
            open(application).close();
            // Half of them of one key, which statistics then expect everywhere.
            Sql.execute(
                    application,
                    "INSERT INTO eventsql.outbox_transfer (shard, producer_id, stream, partition, key, value, written_at)"
                            + " SELECT i % 2, gen_random_uuid(), '" + STREAM + "', 0,"
                            + " CASE WHEN i % 2 = 0 THEN 'hot' ELSE 'k' || i END, 'x', now()"
                            + " FROM generate_series(1, 20000) AS i",
                    "ANALYZE eventsql.outbox_transfer");
            connection.setAutoCommit(false);
            Map<StreamKey, Set<Integer>> shards = new TransferTable(schema)
                    .shardsOfKeys(
                            connection,
                            List.of(
                                    new StreamKey(STREAM, "hot"),
                                    new StreamKey(STREAM, "k7"),
                                    new StreamKey(STREAM, "none"),
                                    new StreamKey("other", "k7")));
            assertThat(shards)
                    .isEqualTo(Map.of(
                            new StreamKey(STREAM, "hot"), Set.of(0),
                            new StreamKey(STREAM, "k7"), Set.of(1)));
            String reads = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables"
                    + " WHERE schemaname = 'eventsql' AND relname = 'outbox_transfer'";
            assertThat(Sql.queryLong(connection, reads)).as("rows read").isLessThan(20);
            connection.rollback();
        }
    }
}
