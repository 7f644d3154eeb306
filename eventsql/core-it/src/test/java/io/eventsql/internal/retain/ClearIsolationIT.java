package io.eventsql.internal.retain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.process.PgBouncer;
import io.eventsql.fixture.process.ServerSessions;
import io.eventsql.internal.sql.ClearStatements;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.sql.SqlSchema;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.jooq.exception.DataAccessException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Goal: clearing never deletes what an append has just committed, whatever isolation level the role or the pool has by
 * default. Method: a trigger holds an append open until the clearing waits for it.
 */
@Timeout(120)
class ClearIsolationIT {
    private static final String STREAM = "orders";
    private static final long GATE = 4711;
    private static final int SERVER_CONNECTIONS = 4;

    private final DataSource database = TestCluster.newDatabaseWithTables();
    private final HikariDataSource pool = TestCluster.pool(database);
    private final EventSql eventSql = EventSql.builder(pool).build();
    private final ExecutorService threads = Executors.newCachedThreadPool();

    @BeforeEach
    void prepare() throws SQLException {
        eventSql.createStream(StreamSpec.of(STREAM).withPartitions(1).withSegmentSize(100));
        publish(eventSql, 0, 10);
        Sql.execute(
                pool,
                "CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS"
                        + " $$ BEGIN PERFORM pg_advisory_xact_lock_shared(" + GATE + "); RETURN NULL; END $$",
                "CREATE TRIGGER wait_at_gate AFTER INSERT ON eventsql.events_" + STREAM
                        + " FOR EACH STATEMENT EXECUTE FUNCTION wait_at_gate()");
    }

    @AfterEach
    void closeAll() {
        threads.close();
        eventSql.close();
        pool.close();
    }

    private static List<EventPosition> publish(EventSql with, int from, int to) {
        return with.publisher()
                .publishAll(
                        STREAM,
                        IntStream.range(from, to)
                                .mapToObj(i -> Event.ofText("k", "" + i))
                                .toList());
    }

    private void awaitWaiting(String query) {
        await().untilAsserted(() -> assertThat(Sql.queryLong(
                        pool,
                        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                                + " AND wait_event_type = 'Lock' AND query LIKE '%" + query + "%'"))
                .isPositive());
    }

    private static int streamId(DataSource of) throws SQLException {
        return Math.toIntExact(
                Sql.queryLong(of, "SELECT stream_id FROM eventsql.stream WHERE name = '" + STREAM + "'"));
    }

    @Test
    void startAtHead_repeatableRead_refusesInsteadOfDeletingWhatWasJustAppended() throws Exception {
        int streamId = streamId(pool);
        try (Connection gate = pool.getConnection()) {
            gate.setAutoCommit(false);
            Sql.query(gate, "SELECT pg_advisory_xact_lock(" + GATE + ")");
            Future<List<EventPosition>> appended = threads.submit(() -> publish(eventSql, 10, 20));
            awaitWaiting("append_v");
            Future<?> cleared = threads.submit(() -> startAtHead(streamId));
            gateOpensWhenClearingWaitsOrFailed(gate, cleared);

            assertThat(appended.get(120, TimeUnit.SECONDS)).hasSize(10);
            await().until(cleared::isDone);
            assertThat(Sql.queryLong(pool, "SELECT count(*) FROM eventsql.events_" + STREAM))
                    .isEqualTo(20);
            assertThatThrownBy(() -> cleared.get(120, TimeUnit.SECONDS))
                    .cause()
                    .isInstanceOfSatisfying(
                            DataAccessException.class,
                            e -> assertThat(e.sqlState()).isEqualTo(SqlErrors.NOT_READ_COMMITTED));
        }
    }

    private void gateOpensWhenClearingWaitsOrFailed(Connection gate, Future<?> cleared) throws SQLException {
        await().until(() -> cleared.isDone()
                || Sql.queryLong(pool, "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'")
                        > 0);
        gate.commit();
        gate.setAutoCommit(true);
    }

    private Object startAtHead(int streamId) throws SQLException {
        try (Connection connection = pool.getConnection()) {
            connection.setAutoCommit(false);
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            try {
                new ClearStatements(new SqlSchema("eventsql")).moveLogStartToHead(connection, streamId, 0);
                connection.commit();
            } finally {
                connection.rollback();
                connection.setAutoCommit(true);
            }
            return streamId;
        }
    }

    @Test
    void clear_defaultIsolationOfTheRole_keepsWhatIsAppendedMeanwhile() throws Exception {
        PGSimpleDataSource withDefault = new PGSimpleDataSource();
        withDefault.setUrl(((PGSimpleDataSource) database).getUrl());
        withDefault.setUser(((PGSimpleDataSource) database).getUser());
        withDefault.setPassword(((PGSimpleDataSource) database).getPassword());
        withDefault.setOptions("-c default_transaction_isolation=serializable");
        try (HikariDataSource other = TestCluster.pool(withDefault)) {
            clearWhileAnAppendIsOpen(other);
        }
    }

    @Test
    void clear_isolationOfThePool_keepsWhatIsAppendedMeanwhile() throws Exception {
        HikariConfig config = new HikariConfig();
        config.setDataSource(database);
        config.setTransactionIsolation("TRANSACTION_REPEATABLE_READ");
        try (HikariDataSource other = new HikariDataSource(config)) {
            clearWhileAnAppendIsOpen(other);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"read committed", "repeatable read"})
    void clear_throughPgBouncer_keepsWhatIsAppendedMeanwhile(String isolation, @TempDir Path folder) throws Exception {
        Optional<Path> program = PgBouncer.program();
        assumeThat(program)
                .as("skipped: pgbouncer is not installed (Debian: apt-get install pgbouncer)")
                .isPresent();
        String name = Sql.query(pool, "SELECT current_database()").getFirst();
        Sql.execute(pool, "ALTER DATABASE " + name + " SET default_transaction_isolation = '" + isolation + "'");
        try (PgBouncer pgBouncer = PgBouncer.start(program.get(), folder, TestCluster.server(), SERVER_CONNECTIONS);
                HikariDataSource other = pgBouncer.pool(name, config -> {})) {
            clearWhileAnAppendIsOpen(other);
            ServerSessions.assertUnchanged(other, SERVER_CONNECTIONS, isolation);
        }
    }

    private void clearWhileAnAppendIsOpen(DataSource dataSource) throws Exception {
        try (EventSql clearing = EventSql.builder(dataSource).build();
                Connection gate = pool.getConnection()) {
            gate.setAutoCommit(false);
            Sql.query(gate, "SELECT pg_advisory_xact_lock(" + GATE + ")");
            Future<List<EventPosition>> appended = threads.submit(() -> publish(eventSql, 10, 20));
            awaitWaiting("append_v");
            String confirmation = clearing.previewClear(STREAM).confirmation();
            Future<Long> cleared = threads.submit(() -> clearing.clear(STREAM, confirmation));
            gateOpensWhenClearingWaitsOrFailed(gate, cleared);
            assertThat(appended.get(120, TimeUnit.SECONDS)).hasSize(10);
            cleared.get(120, TimeUnit.SECONDS);

            // Everything before the start of the log was deleted, nothing after it.
            publish(clearing, 20, 25);
            long start = Sql.queryLong(pool, "SELECT log_start FROM eventsql.partition_head");
            assertThat(start).isEqualTo(20);
            assertThat(eventSql.read(new EventPosition(STREAM, 0, 0, start), 100))
                    .extracting(event -> event.text())
                    .containsExactly("20", "21", "22", "23", "24");
        }
    }
}
