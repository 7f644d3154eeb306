package io.eventsql.internal.sql;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.AppendFixture;
import io.eventsql.fixture.DelegatingDataSource;
import io.eventsql.fixture.Sql;
import io.eventsql.internal.sql.ScheduledTable.Scheduled;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.Collections;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/**
 * Goal: the server sends the warnings by which commits are judged, and those of maintenance, also to sessions that withhold
 * them. Method: each statement runs in a transaction of such a session, and the setting that its commit would have is read.
 */
class CommitWarningsIT extends AppendFixture {
    private static final SqlSchema SCHEMA = new SqlSchema("eventsql");
    private static final String WITHHOLD = "SELECT set_config('client_min_messages', 'error', false)";
    private static final String READ = "SELECT current_setting('client_min_messages')";

    /** A statement under test. */
    private interface Execution {
        void execute(Connection connection) throws SQLException;
    }

    /** Returns the setting after the statement, in its transaction, which is rolled back. */
    private static String after(Execution statement) throws SQLException {
        try (Connection connection = eventsDb.dataSource().getConnection()) {
            Sql.query(connection, WITHHOLD);
            connection.setAutoCommit(false);
            statement.execute(connection);
            String setting = Sql.query(connection, READ).getFirst();
            connection.rollback();
            assertThat(Sql.query(connection, READ)).as("of the session").containsExactly("error");
            connection.rollback();
            return setting;
        }
    }

    @Test
    void append_sessionWithholdsWarnings_commitSendsThem() throws SQLException {
        createStream("one", 2);
        createStream("other", 2);
        AppendStatement.Rows ofOne = rows(Part.of("one", 0, "a"));
        AppendStatement.Rows ofBoth = rows(Part.of("one", 0, "a"), Part.of("other", 1, "b"));
        MapFence maps = MapFence.of(MAP_VERSION);

        assertThat(after(c -> APPEND.execute(c, producer, 1, maps, null, ofOne)))
                .isEqualTo("warning");
        assertThat(after(c -> APPEND.execute(c, producer, 1, maps, null, ofBoth)))
                .isEqualTo("warning");
    }

    @Test
    void appendBlocks_sessionWithholdsWarnings_commitSendsThem() throws SQLException {
        eventSql.createStream(StreamSpec.of("blocks").withPartitions(2).withStorage(Storage.BLOCKS));
        int id = (int) number("SELECT stream_id FROM eventsql.stream WHERE name = 'blocks'");
        BlockAppendStatement append = new BlockAppendStatement(SCHEMA);
        BlockAppendStatement.Packer packer = new BlockAppendStatement.Packer(1);
        packer.begin("blocks", id, 0);
        packer.add("k", "a".getBytes(UTF_8), null);
        BlockAppendStatement.Blocks batch = packer.finish();

        assertThat(after(c -> append.execute(c, producer, 1, MapFence.of(MAP_VERSION), null, batch)))
                .isEqualTo("warning");
    }

    @Test
    void appendExpected_sessionWithholdsWarnings_commitSendsThem() throws SQLException {
        eventSql.createStream(StreamSpec.of("counted").withPartitions(1).withKeyVersions());
        int id = (int) number("SELECT stream_id FROM eventsql.stream WHERE name = 'counted'");
        ExpectedAppendStatement append = new ExpectedAppendStatement(SCHEMA);
        AppendStatement.Rows rows = new AppendStatement.Rows(
                new String[] {"counted"},
                new int[] {id},
                new int[] {0},
                new int[] {1},
                new String[] {"k"},
                new byte[][] {"a".getBytes(UTF_8)},
                new String[1]);
        ExpectedAppendStatement.Steps steps = new ExpectedAppendStatement.Steps(
                new int[] {1}, new int[] {1}, new Long[] {0L}, new int[] {1}, new int[] {1}, new String[] {"k"});

        assertThat(after(c -> append.execute(c, producer, 1, MapFence.of(MAP_VERSION), null, rows, steps)))
                .isEqualTo("warning");
    }

    @Test
    void appendTransferred_sessionWithholdsWarnings_commitSendsThem() throws SQLException {
        createStream("transferred", 1);
        AppendStatement.Rows rows = rows(Part.of("transferred", 0, "a"));
        TransferredAppend append = new TransferredAppend(SCHEMA);

        assertThat(after(c -> append.execute(
                        c,
                        producer,
                        MapFence.of(MAP_VERSION),
                        null,
                        rows,
                        Collections.singletonList(null),
                        List.of(1L),
                        List.of())))
                .isEqualTo("warning");
    }

    @Test
    void relayPoll_sessionWithholdsWarnings_commitSendsThem() throws SQLException {
        RelayTable relay = new RelayTable(SCHEMA);

        assertThat(after(c -> relay.poll(c, producer, 0, 1, false))).isEqualTo("warning");
    }

    @Test
    void schedule_sessionWithholdsWarnings_onlyCommitOfTheLibrarySendsThem() throws SQLException {
        createStream("scheduled", 1);
        ScheduledTable table = new ScheduledTable(SCHEMA);
        String incarnation = Sql.query(pool, "SELECT eventsql.incarnation_v1()").getFirst();
        Instant due = Instant.now().plus(Duration.ofHours(1));
        Scheduled event = new Scheduled(UUID.randomUUID(), due, "scheduled", "k", "a".getBytes(UTF_8), null, 0);

        assertThat(after(c -> table.schedule(c, event, false, incarnation))).isEqualTo("warning");
        assertThat(after(c -> table.cancel(c, event.id(), due))).isEqualTo("warning");
        assertThat(after(c -> table.schedule(c, event, false, null)))
                .as("in a transaction of the application")
                .isEqualTo("error");
    }

    /** Retention, compaction, moves of keys and the relay run in such transactions. */
    @Test
    void transaction_sessionWithholdsWarnings_commitSendsThem() throws SQLException {
        Database database = new Database(
                new DelegatingDataSource(eventsDb.dataSource()) {
                    @Override
                    public Connection getConnection() throws SQLException {
                        Connection connection = super.getConnection();
                        Sql.query(connection, WITHHOLD);
                        return connection;
                    }
                },
                Duration.ofSeconds(10));

        List<String> inTransaction = database.transaction(c -> Sql.query(c, READ));
        List<String> inReplicatedTransaction = database.replicatedTransaction(c -> Sql.query(c, READ));

        assertThat(inTransaction).containsExactly("warning");
        assertThat(inReplicatedTransaction).containsExactly("warning");
        assertThat(database.transactionIf(c -> Sql.query(c, READ).equals(List.of("warning"))))
                .isTrue();
    }
}
