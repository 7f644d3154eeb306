package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.fixture.AppendFixture;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.internal.sql.AppendStatement.Rows;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The rules of the append function, one test each. */
class AppendStatementIT extends AppendFixture {
    @Test
    void append_severalBatches_offsetsAreGaplessAndInOrder() throws Exception {
        createStream("gapless", 2);
        assertThat(append(1, Part.of("gapless", 0, "a", "b"))).containsExactly(0);
        assertThat(append(2, Part.of("gapless", 0, "c"), Part.of("gapless", 1, "x", "y", "z")))
                .containsExactly(2, 0);
        assertThat(append(UUID.randomUUID(), 1, Part.of("gapless", 0, "d"))).containsExactly(3);
        assertThat(append(3, Part.of("gapless", 1, "w"))).containsExactly(3);

        List<Ledger.Stored> stored = read("gapless");
        Ledger.assertGapless(stored);
        assertThat(stored).extracting(Ledger.Stored::value).containsExactly("a", "b", "c", "d", "x", "y", "z", "w");
    }

    @Test
    void append_sameBatchNumber_returnsStoredOffsetsAndStoresNothing() throws Exception {
        createStream("again", 2);
        append(UUID.randomUUID(), 1, Part.of("again", 0, "other"));
        Part[] batch = {Part.of("again", 0, "a", "b"), Part.of("again", 1, "c")};
        assertThat(append(7, batch)).containsExactly(1, 0);
        append(UUID.randomUUID(), 1, Part.of("again", 0, "another"));
        assertThat(append(7, batch)).containsExactly(1, 0);
        assertThat(append(7, batch)).containsExactly(1, 0);

        assertThat(read("again")).extracting(Ledger.Stored::value).containsExactly("other", "a", "b", "another", "c");
    }

    @Test
    void append_lowerBatchNumber_isRejected() throws Exception {
        createStream("lower", 2);
        append(5, Part.of("lower", 0, "a"));
        assertRejected("ES002", () -> append(4, Part.of("lower", 0, "b")));
        assertRejected("ES002", () -> append(4, Part.of("lower", 0, "b"), Part.of("lower", 1, "c")));
        append(4, Part.of("lower", 1, "of another partition"));

        assertThat(read("lower")).extracting(Ledger.Stored::value).containsExactly("a", "of another partition");
    }

    @Test
    void append_gapInBatchNumbers_isAllowed() throws Exception {
        createStream("number_gaps", 1);
        assertThat(append(1, Part.of("number_gaps", 0, "a"))).containsExactly(0);
        assertThat(append(50, Part.of("number_gaps", 0, "b"))).containsExactly(1);
        assertThat(append(1_000_000_000_000L, Part.of("number_gaps", 0, "c"))).containsExactly(2);
    }

    @Test
    void append_partOfBatchIsStored_isRejected() throws Exception {
        createStream("partial", 2);
        append(5, Part.of("partial", 0, "a"));
        assertRejected("ES005", () -> append(5, Part.of("partial", 0, "a"), Part.of("partial", 1, "b")));
        assertThat(read("partial")).extracting(Ledger.Stored::value).containsExactly("a");
    }

    @ParameterizedTest
    @ValueSource(ints = {Connection.TRANSACTION_REPEATABLE_READ, Connection.TRANSACTION_SERIALIZABLE})
    void append_isolationIsNotReadCommitted_isRejected(int isolation) throws Exception {
        String stream = "isolation" + isolation;
        createStream(stream, 1);
        try (Connection connection = eventsDb.dataSource().getConnection()) {
            connection.setTransactionIsolation(isolation);
            Rows rows = rows(Part.of(stream, 0, "a"));
            assertRejected(
                    "ES003", () -> APPEND.execute(connection, producer, 1, MapFence.of(MAP_VERSION), null, rows));
        }
        assertThat(read(stream)).isEmpty();
    }

    @Test
    void append_otherMapVersion_isRejected() throws Exception {
        createStream("map_version", 1);
        try (Connection connection = pool.getConnection()) {
            Rows rows = rows(Part.of("map_version", 0, "a"));
            assertRejected(
                    "ES001", () -> APPEND.execute(connection, producer, 1, MapFence.of(MAP_VERSION + 1), null, rows));
            assertRejected(
                    "ES001", () -> APPEND.execute(connection, producer, 1, MapFence.of(MAP_VERSION - 1), null, rows));
        }
        assertThat(read("map_version")).isEmpty();
    }

    @Test
    void append_mapChangesDuringLockWait_isRejected() throws Exception {
        createStream("map_change", 1);
        try (Connection holder = pool.getConnection();
                Statement statement = holder.createStatement()) {
            holder.setAutoCommit(false);
            statement.execute("UPDATE eventsql.stream_partition SET map_version = map_version + 1"
                    + " WHERE stream_id = (SELECT stream_id FROM eventsql.stream WHERE name = 'map_change')");
            CompletableFuture<long[]> append = async(() -> append(1, Part.of("map_change", 0, "a")));
            awaitAppendsWaitingForALock(1);
            holder.commit();
            assertThatThrownBy(() -> append.get(120, TimeUnit.SECONDS))
                    .rootCause()
                    .hasMessageContaining("map version is 2, not 1");
        }
        assertThat(read("map_change")).isEmpty();
    }

    @Test
    void append_unknownPartition_isRejected() throws Exception {
        createStream("unknown_partition", 1);
        assertRejected(
                "ES004", () -> append(1, Part.of("unknown_partition", 0, "a"), Part.of("unknown_partition", 1, "b")));
        assertThat(read("unknown_partition")).isEmpty();
    }

    @Test
    void append_batchSpansTwoSegments_isStoredWithoutGap() throws Exception {
        createStream("straddles", 1);
        append(1, Part.of("straddles", 0, values(0, 60)));
        assertThat(append(2, Part.of("straddles", 0, values(60, 180)))).containsExactly(60);
        List<Ledger.Stored> stored = read("straddles");
        Ledger.assertGapless(stored);
        assertThat(stored).extracting(Ledger.Stored::value).containsExactly(values(0, 180));
        assertThat(number("SELECT count(*) FROM eventsql.events_straddles__p0_s0"))
                .isEqualTo(100);
        assertThat(number("SELECT count(*) FROM eventsql.events_straddles__p0_s1"))
                .isEqualTo(80);
    }

    @Test
    void append_segmentMissingForPartOfBatch_storesNothingAndMayBeResent() throws Exception {
        createStream("no_segment", 1);
        append(1, Part.of("no_segment", 0, values(0, 199)));
        assertRejected("23514", () -> append(2, Part.of("no_segment", 0, "last", "beyond")));
        assertThat(read("no_segment")).hasSize(199);
        try (EventSql library = EventSql.builder(pool).build()) {
            library.publisher().publish("no_segment", Event.ofText("uses the room"));
            library.publisher().publish("no_segment", Event.ofText("makes room"));
        }
        assertThat(append(2, Part.of("no_segment", 0, "last", "beyond"))).containsExactly(201);
    }

    @Test
    void append_batchOfSeveralStreams_eachHasItsOwnOffsets() throws Exception {
        createStream("several_a", 2);
        createStream("several_b", 2);
        Part[] first = {
            Part.of("several_a", 0, "a0"), Part.of("several_a", 1, "a1", "a2"), Part.of("several_b", 1, "b0", "b1")
        };
        assertThat(append(1, first)).containsExactly(0, 0, 0);
        assertThat(append(
                        2, Part.of("several_a", 1, "a3"), Part.of("several_b", 0, "b2"), Part.of("several_b", 1, "b3")))
                .containsExactly(2, 0, 2);
        assertThat(append(
                        2, Part.of("several_a", 1, "a3"), Part.of("several_b", 0, "b2"), Part.of("several_b", 1, "b3")))
                .containsExactly(2, 0, 2);

        assertThat(read("several_a")).extracting(Ledger.Stored::value).containsExactly("a0", "a1", "a2", "a3");
        assertThat(read("several_b")).extracting(Ledger.Stored::value).containsExactly("b2", "b0", "b1", "b3");
        Ledger.assertGapless(read("several_a"));
        Ledger.assertGapless(read("several_b"));
    }

    /** A deferred trigger runs during the commit, so it sees the setting that the commit uses. */
    @ParameterizedTest
    @CsvSource({"off, on", "local, on", "on, on", "remote_write, remote_write", "remote_apply, remote_apply"})
    void append_weakSynchronousCommit_isRaisedForTheTransaction(String ofSession, String atCommit) throws Exception {
        String stream = "sync_" + ofSession;
        createStream(stream, 1);
        execute("CREATE TABLE " + stream + "_seen (setting text)");
        execute("CREATE FUNCTION " + stream + "_see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO "
                + stream + "_seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$");
        execute("CREATE CONSTRAINT TRIGGER see AFTER INSERT ON eventsql.events_" + stream
                + " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION " + stream + "_see()");
        try (Connection connection = eventsDb.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("SET synchronous_commit = " + ofSession);
            APPEND.execute(connection, producer, 1, MapFence.of(MAP_VERSION), null, rows(Part.of(stream, 0, "a")));
            assertThat(text(statement, "SHOW synchronous_commit"))
                    .as("setting of the session")
                    .isEqualTo(ofSession);
            assertThat(text(statement, "SELECT setting FROM " + stream + "_seen"))
                    .isEqualTo(atCommit);
        }
    }

    private static String text(Statement statement, String query) throws SQLException {
        try (ResultSet row = statement.executeQuery(query)) {
            row.next();
            return row.getString(1);
        }
    }

    /** Appends on a connection with a network timeout, from which the time limits of the statement follow. */
    private void appendWithin(Duration networkTimeout, Part... parts) throws SQLException {
        try (Connection connection = pool.getConnection();
                NetworkTimeout limit = NetworkTimeout.set(connection, networkTimeout)) {
            APPEND.execute(connection, producer, 1, MapFence.of(MAP_VERSION), null, rows(parts));
        }
    }

    @Test
    void append_partitionLocked_endsBeforeTheNetworkTimeoutAndNamesTheRow() throws Exception {
        createStream("locked", 1);
        try (Connection holder = pool.getConnection();
                Statement statement = holder.createStatement()) {
            holder.setAutoCommit(false);
            statement.execute("SELECT FROM eventsql.stream_partition FOR UPDATE");
            assertThatThrownBy(() -> appendWithin(Duration.ofSeconds(4), Part.of("locked", 0, "a")))
                    .isInstanceOfSatisfying(SQLException.class, e -> {
                        assertThat(SqlErrors.isLockTimeout(e)).isTrue();
                        assertThat(SqlErrors.message(e))
                                .contains("lock timeout while locking tuple", "in relation \"stream_partition\"");
                    });
            holder.rollback();
            holder.setAutoCommit(true);
        }
    }

    @Test
    void append_timeLimitPassedBetweenTwoTables_isRolledBack() throws Exception {
        createStream("slow", 1);
        createStream("slow_too", 1);
        execute("CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql AS"
                + " $$ BEGIN PERFORM pg_sleep(4); RETURN NULL; END $$");
        execute("CREATE TRIGGER sleep AFTER INSERT ON eventsql.events_slow FOR EACH STATEMENT"
                + " EXECUTE FUNCTION sleep()");

        assertRejected(
                SqlErrors.TIME_LIMIT,
                () -> appendWithin(Duration.ofSeconds(6), Part.of("slow", 0, "a"), Part.of("slow_too", 0, "b")));

        assertThat(read("slow")).isEmpty();
    }

    @Test
    void append_clockGoesBack_publishedAtDoesNot() throws Exception {
        createStream("clock", 1);
        append(1, Part.of("clock", 0, "a"));
        execute("UPDATE eventsql.producer_batch SET published_at = clock_timestamp() + interval '1 hour'"
                + " WHERE stream_id = (SELECT stream_id FROM eventsql.stream WHERE name = 'clock')");
        append(2, Part.of("clock", 0, "b"));
        append(UUID.randomUUID(), 1, Part.of("clock", 0, "c"));

        assertThat(number("SELECT count(*) FROM eventsql.events_clock"
                        + " WHERE event_offset > 0 AND published_at > clock_timestamp() + interval '50 minutes'"))
                .isEqualTo(2);
        assertThat(number("SELECT count(*) FROM (SELECT published_at < lag(published_at) OVER (ORDER BY event_offset)"
                        + " AS backwards FROM eventsql.events_clock) AS times WHERE backwards"))
                .isZero();
    }
}
