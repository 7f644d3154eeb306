package io.eventsql.internal.retain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.EventPosition;
import io.eventsql.Retention;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.DocumentedSql;
import io.eventsql.fixture.Sql;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: where readers never leave a moment without a transaction that has read the stream, empty tables can be dropped with the
 * statements of docs/retention.md, also after a detach was interrupted. Method: the statements are read from the document;
 * each reader's transaction begins before the one before it ends.
 */
@Timeout(120)
class DetachByHandIT {
    /** Generous, so that only a hang fails. */
    private static final Duration DEADLINE = Duration.ofSeconds(120);

    private static final String STREAM = "orders"; // of the document
    private static final String TABLE = "events_orders__p0_s7";

    private final RetentionFixture fixture = new RetentionFixture();
    private List<String> statements;

    @BeforeEach
    void leaveEmptyTables() throws IOException {
        statements = Arrays.stream(
                        DocumentedSql.block("retention.md", "DETACH PARTITION").split(";\\s*", -1))
                .filter(statement -> !statement.isBlank())
                .toList();
        assertThat(statements).hasSize(3);
        fixture.eventSql.createStream(StreamSpec.of(STREAM)
                .withPartitions(1)
                .withSegmentSize(100)
                .withRetention(Retention.FOREVER.withMaxEvents(100)));
    }

    @AfterEach
    void close() {
        fixture.close();
    }

    /** Returns the connection of a transaction that uses the table of the partition, as one that has read the stream does. */
    private Connection openReader() throws SQLException {
        Connection reader = fixture.database.getConnection();
        reader.setAutoCommit(false);
        try (Statement statement = reader.createStatement()) {
            statement.execute("LOCK TABLE ONLY eventsql.events_orders__p0 IN ACCESS SHARE MODE");
        }
        return reader;
    }

    private void awaitDetaching() {
        await().atMost(DEADLINE)
                .until(() -> Sql.queryLong(
                                fixture.database,
                                "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'ALTER TABLE % DETACH %'"
                                        + " AND wait_event_type = 'Lock'")
                        == 1);
    }

    private String isDetachPending(String table) throws SQLException {
        return String.join(
                "",
                Sql.query(
                        fixture.database,
                        "SELECT inhdetachpending FROM pg_inherits WHERE inhrelid = to_regclass(?)",
                        "eventsql." + table));
    }

    @Test
    void detachAndDrop_readersWithoutAPause_emptyTablesAreDropped() throws Exception {
        String detach = statements.get(1);
        try (ExecutorService executor = Executors.newCachedThreadPool();
                Connection first = openReader()) {
            fixture.publish(STREAM, 1_050);
            fixture.pass();
            fixture.pass();
            assertThat(Sql.query(fixture.database, "SELECT eventsql.drop_empty_segments_v1(false)"))
                    .containsExactly("0");
            assertThat(Sql.query(fixture.database, statements.get(0))).contains(TABLE);

            Future<?> detached = executor.submit(() -> {
                Sql.execute(fixture.database, detach);
                return null;
            });
            awaitDetaching();
            try (Connection second = openReader()) {
                first.rollback();
                detached.get(120, TimeUnit.SECONDS);
                Sql.execute(fixture.database, statements.get(2));
                interruptAndFinalize(second, detach.replace(TABLE, "events_orders__p0_s6"));

                Sql.query(fixture.database, "SELECT eventsql.drop_empty_segments_v1(false)");

                assertThat(fixture.segments(STREAM))
                        .as("segments in the catalog, those that were dropped by hand left out")
                        .contains("500-600 empty")
                        .noneMatch(segment -> segment.startsWith("700-"));
                assertThat(fixture.eventSql.read(new EventPosition(STREAM, 0, 0, fixture.logStart(STREAM)), 1_000))
                        .hasSize((int) (1_050 - fixture.logStart(STREAM)));
                fixture.publish(STREAM, 500);
                second.rollback();
            }
        }
        await().atMost(DEADLINE)
                .until(() -> Sql.query(fixture.database, "SELECT eventsql.drop_empty_segments_v1(false)")
                        .equals(List.of("0")));
        assertThat(fixture.segments(STREAM)).noneMatch(segment -> segment.endsWith("empty"));
    }

    /** A detach is canceled while it waits for the reader; no other one succeeds before it is completed. */
    private void interruptAndFinalize(Connection reader, String detach) throws SQLException {
        try (Connection connection = fixture.database.getConnection();
                Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            assertThatThrownBy(() -> statement.execute(detach)).hasMessageContaining("canceling statement");
        }
        assertThat(isDetachPending("events_orders__p0_s6")).isEqualTo("t");
        assertThatThrownBy(() -> Sql.execute(fixture.database, detach.replace("_s6", "_s5")))
                .hasMessageContaining("already pending detach");
        Sql.execute(fixture.database, detach.replace("CONCURRENTLY", "FINALIZE"));
        assertThat(isDetachPending("events_orders__p0_s6")).isEmpty();
        assertThat(reader.isClosed()).isFalse();
    }
}
