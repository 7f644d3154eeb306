package io.eventsql.internal.shard;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.LogicalBackup;
import io.eventsql.fixture.Roles;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.internal.sql.AppendStatement;
import io.eventsql.internal.sql.FetchStatement;
import io.eventsql.internal.sql.MapFence;
import io.eventsql.internal.sql.OffsetTable;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.sql.SqlSchema;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What changes the incarnation of a database, and what the functions reject because of it. */
@Timeout(60)
class IncarnationIT {
    private static final SqlSchema SCHEMA = new SqlSchema("eventsql");
    private static final StreamSpec STREAM = StreamSpec.of("orders").withPartitions(1);
    private static final AppendStatement APPEND = new AppendStatement(SCHEMA);
    private static final FetchStatement FETCH = new FetchStatement(SCHEMA);

    private TestCluster cluster;
    private DataSource database;
    private EventSql eventSql;

    @BeforeEach
    void open() {
        cluster = TestCluster.ofShards(1);
        database = cluster.dataSources().getFirst();
        eventSql = cluster.open();
        eventSql.createStream(STREAM);
    }

    @AfterEach
    void close() {
        cluster.close();
    }

    private String incarnation() throws SQLException {
        return Sql.query(database, "SELECT eventsql.incarnation_v1()").getFirst();
    }

    private String foundIncarnation() throws SQLException {
        return Sql.query(database, "SELECT eventsql.find_incarnation_v1()").getFirst();
    }

    private static void assertRejected(String state, ThrowingCallable call) {
        assertThatThrownBy(call)
                .isInstanceOfSatisfying(
                        SQLException.class, e -> assertThat(e.getSQLState()).isEqualTo(state));
    }

    /** The connection breaks between two comparisons. */
    @Test
    void recheck_laterComparisonFails_whatAnEarlierOneHasFoundIsReportedInTheEnd() throws SQLException {
        Shards shards = Shards.open(List.of(database), Settings.defaults());
        Shard shard = shards.get(0);
        List<String> reported = new ArrayList<>();
        AtomicInteger comparisons = new AtomicInteger();
        shard.addAnchors(restored -> comparisons.get() > 0 ? () -> {} : () -> reported.add("lost"));
        shard.addAnchors(restored -> {
            if (comparisons.incrementAndGet() == 1) {
                throw new SQLException("cut by the test", "08006");
            }
            return () -> {};
        });
        String before = shard.incarnation();
        Sql.execute(database, "SELECT eventsql.declare_restored('test')");
        assertThatThrownBy(() -> shard.recheckIncarnation(before)).isInstanceOf(SQLException.class);
        assertThat(reported).isEmpty();
        shard.recheckIncarnation(before);
        assertThat(reported).containsExactly("lost");
        shards.close();
    }

    @Test
    void incarnation_rowFrozenAndSessionsEnded_isUnchanged() throws SQLException {
        String before = incarnation();
        Sql.execute(database, "VACUUM FREEZE eventsql.incarnation");
        assertThat(incarnation()).isEqualTo(before);
        assertThat(foundIncarnation()).isEqualTo(before);
    }

    @Test
    void incarnation_rowsInsertedAnewByARestore_isUnknownUntilItIsFound() throws SQLException {
        String before = incarnation();
        eventSql.close();
        LogicalBackup.take(database).restore(database);
        assertThat(incarnation()).isNull();
        String found = foundIncarnation();
        assertThat(found).isNotNull().isNotEqualTo(before);
        assertThat(incarnation()).isEqualTo(found);
        assertThat(foundIncarnation()).isEqualTo(found);
    }

    /** A restore creates primary keys when the rows of all tables are there. */
    @Test
    void incarnation_restoreIsNotComplete_isUnknownUntilTheTableHasItsPrimaryKey() throws SQLException {
        eventSql.close();
        Sql.execute(database, "ALTER TABLE eventsql.incarnation DROP CONSTRAINT incarnation_pkey");
        LogicalBackup.take(database).restore(database);
        assertThat(foundIncarnation()).isNull();
        Sql.execute(database, "ALTER TABLE eventsql.incarnation ADD PRIMARY KEY (singleton)");
        assertThat(foundIncarnation()).isNotNull();
    }

    @Test
    void incarnation_rowOfTheFormerFileWithTheSameTransaction_isUnknown() throws SQLException {
        eventSql.close(); // it would find the new one and record it
        // A dump of a young server, restored on another young server: their transaction ids are alike.
        Sql.execute(
                database, "UPDATE eventsql.incarnation SET written_in = pg_current_xact_id(), written_to = 'base/1/1'");
        assertThat(incarnation()).isNull();
    }

    @Test
    void declareRestored_afterASavepoint_isRejected() throws SQLException {
        String before = incarnation();
        try (Connection connection = database.getConnection()) {
            connection.setAutoCommit(false);
            connection.setSavepoint();
            assertThatThrownBy(() -> Sql.query(connection, "SELECT eventsql.declare_restored('test')"))
                    .hasMessageContaining("savepoint");
            connection.rollback();
        }
        assertThat(incarnation()).isEqualTo(before);
        Sql.execute(database, "SELECT eventsql.declare_restored('test')");
        assertThat(incarnation()).isNotEqualTo(before);
        assertThat(Sql.query(database, "SELECT reason FROM eventsql.incarnation"))
                .containsExactly("test");
    }

    private AppendStatement.Rows oneEvent(String stream, int streamId) {
        return new AppendStatement.Rows(
                new String[] {stream},
                new int[] {streamId},
                new int[] {0},
                new int[] {1},
                new String[] {"key"},
                new byte[][] {{'x'}},
                new String[1]);
    }

    private int id(String stream) throws SQLException {
        return (int) Sql.queryLong(database, "SELECT stream_id FROM eventsql.stream WHERE name = '" + stream + "'");
    }

    @Test
    void append_otherIncarnationOrStream_isRejectedAndStoresNothing() throws SQLException {
        eventSql.createStream(StreamSpec.of("bills").withPartitions(1));
        String current = incarnation();
        UUID producer = UUID.randomUUID();
        try (Connection connection = database.getConnection()) {
            assertRejected(
                    SqlErrors.OTHER_INCARNATION,
                    () -> APPEND.execute(
                            connection, producer, 1, MapFence.of(1), "former", oneEvent("orders", id("orders"))));
            assertRejected(
                    SqlErrors.OTHER_STREAM,
                    () -> APPEND.execute(
                            connection, producer, 1, MapFence.of(1), current, oneEvent("orders", id("bills"))));
            assertThat(APPEND.execute(
                            connection, producer, 1, MapFence.of(1), current, oneEvent("orders", id("orders"))))
                    .containsExactly(0);
        }
    }

    @Test
    void fetch_otherIncarnationOrStream_isRejected() throws SQLException {
        eventSql.createStream(StreamSpec.of("bills").withPartitions(1));
        eventSql.publisher().publish("orders", Event.ofText("x"));
        String current = incarnation();
        List<FetchStatement.Request> request = List.of(new FetchStatement.Request(0, 0, 1_000));
        try (Connection connection = database.getConnection()) {
            assertRejected(
                    SqlErrors.OTHER_INCARNATION,
                    () -> FETCH.execute(connection, "former", id("orders"), STREAM, 0, request, 10));
            assertRejected(
                    SqlErrors.OTHER_STREAM,
                    () -> FETCH.execute(connection, current, id("bills"), STREAM, 0, request, 10));
            assertThat(FETCH.execute(connection, current, id("orders"), STREAM, 0, request, 10)
                            .getFirst()
                            .events())
                    .hasSize(1);
        }
    }

    /** A holder of the lost history may have the epoch that another holder got after the restore. */
    @Test
    void commit_equalEpochOfALostHistory_isRejected() throws SQLException {
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(ConsumerSpec.of("orders", "c"), handled::add)) {
            eventSql.publisher().publish("orders", Event.ofText("x"));
            handled.awaitSize(1);
        }
        int consumer = (int) Sql.queryLong(database, "SELECT consumer_id FROM eventsql.consumer");
        long epoch = Sql.queryLong(database, "SELECT max(epoch) FROM eventsql.consumer_offset");
        String former = incarnation();
        Sql.execute(database, "SELECT eventsql.declare_restored('test')");
        List<OffsetTable.Handled> progress = List.of(new OffsetTable.Handled(0, epoch, 1, 2, 1));
        OffsetTable offsets = new OffsetTable(SCHEMA);
        try (Connection connection = database.getConnection()) {
            assertRejected(SqlErrors.OTHER_INCARNATION, () -> offsets.commit(connection, former, consumer, progress));
            assertThat(Sql.queryLong(database, "SELECT max(next_offset) FROM eventsql.consumer_offset"))
                    .isEqualTo(1);
            assertThat(offsets.commit(connection, incarnation(), consumer, progress))
                    .containsExactly(0);
        }
    }

    /** Managed services withhold some of these functions, or let them fail. */
    @Test
    void functionsOfTheServerWithheld_libraryWorks() throws Exception {
        DataSource empty = TestCluster.newDatabase();
        for (String function : List.of(
                "pg_walfile_name(pg_lsn)",
                "pg_current_wal_insert_lsn()",
                "pg_current_wal_lsn()",
                "pg_postmaster_start_time()",
                "pg_control_system()",
                "pg_control_checkpoint()",
                "pg_terminate_backend(int, bigint)",
                "pg_cancel_backend(int)",
                "pg_stat_get_activity(int)",
                "pg_stat_get_wal_senders()",
                "pg_is_in_recovery()",
                "pg_read_file(text)",
                "pg_ls_dir(text)")) {
            Sql.execute(Roles.admin(empty), "REVOKE EXECUTE ON FUNCTION " + function + " FROM PUBLIC");
        }
        try (HikariDataSource pool = TestCluster.pool(empty);
                EventSql withheld = EventSql.builder(pool).build()) {
            withheld.createStream(STREAM);
            Handled handled = new Handled();
            withheld.subscribe(ConsumerSpec.of("orders", "plain"), handled::add);
            withheld.subscribeTransactional(
                    ConsumerSpec.of("orders", "transactional"), (event, connection) -> handled.add(event));
            withheld.publisher().publish("orders", Event.ofText("x"));
            try (Connection connection = pool.getConnection()) {
                connection.setAutoCommit(false);
                withheld.outbox().publish(connection, "orders", Event.ofText("y"));
                connection.commit();
            }
            handled.awaitSize(4);
            withheld.clear("orders", awaitReleased(withheld));
            assertThat(Sql.query(pool, "SELECT eventsql.incarnation_v1()").getFirst())
                    .endsWith("..");
            Sql.execute(pool, "SELECT eventsql.declare_restored('test')");
            withheld.publisher().publish("orders", Event.ofText("z"));
        }
    }

    private static String awaitReleased(EventSql eventSql) {
        eventSql.subscriptions().forEach(subscription -> subscription.close(Duration.ofSeconds(10)));
        return eventSql.previewClear("orders").confirmation();
    }
}
