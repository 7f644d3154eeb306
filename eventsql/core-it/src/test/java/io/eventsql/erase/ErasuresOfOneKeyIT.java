package io.eventsql.erase;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Erasure;
import io.eventsql.ErasureSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.StoredEvent;
import io.eventsql.fixture.Sql;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Erasures of one key next to each other, and steps that take long. */
class ErasuresOfOneKeyIT extends ErasureFixture {
    /** The later one leaves the headers, so it must not replace the earlier one: not in the outbox, either. */
    @Test
    void erase_earlierOneWithHeadersWaits_bothEnd() throws SQLException {
        open(1);
        publish(20, 2, new Random(1));
        Erasure withHeaders;
        try (Connection reader = database().getConnection()) {
            reader.setAutoCommit(false);
            reader.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            Sql.query(reader, "SELECT count(*) FROM eventsql.stream");
            withHeaders = eventSql.erase(
                    ErasureSpec.of(stream, "k1").withHeaders("name").withTimeout(Duration.ZERO));
            assertThat(withHeaders.isDone()).isFalse();
            Erasure without = eventSql.erase(ErasureSpec.of(stream, "k1").withTimeout(Duration.ZERO));
            assertThat(without.isDone()).isFalse();
            reader.rollback();
            reader.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        }

        // The next step of the process that still runs the first one. Before, it failed with ES018.
        assertThat(Sql.query(
                        database(), "SELECT phase FROM eventsql.erase_outbox_step_v1(?, ?)", withHeaders.id(), 100))
                .containsExactly("files");

        assertThat(eventSql.resumeErasure(withHeaders.id()).isDone()).isTrue();
        assertThat(readAll(stream))
                .filteredOn(event -> "k1".equals(event.key()))
                .hasSize(10)
                .allSatisfy(event -> assertThat(event.headers()).containsEntry("name", ""));
        assertNoFileContains(mark("k1"));
        assertNoFileContains(name("k1"));
    }

    /** The events between the two are those of the later one alone, although the earlier one has more headers. */
    @Test
    void resumeErasure_laterOneHasNotEnded_leavesItsEventsToIt() throws SQLException {
        open(1);
        publish(20, 2, new Random(1));
        Erasure earlier;
        Erasure later;
        try (Connection other = database().getConnection()) {
            other.setAutoCommit(false);
            other.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            Sql.query(other, "SELECT count(*) FROM eventsql.stream");
            earlier = eventSql.erase(
                    ErasureSpec.of(stream, "k1").withHeaders("name").withTimeout(Duration.ZERO));
            assertThat(earlier.isErased()).isTrue();
            assertThat(earlier.isDone()).isFalse();
            publish(20, 2, new Random(2));
            try (Statement statement = other.createStatement()) {
                statement.execute("LOCK TABLE eventsql.erasure_range IN SHARE MODE");
            }
            later = eventSql.erase(ErasureSpec.of(stream, "k1").withTimeout(Duration.ZERO));
            assertThat(later.isErased()).isFalse();
            other.rollback();
            other.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        }

        assertThat(eventSql.resumeErasure(earlier.id()).isDone()).isTrue();
        assertThat(eventSql.resumeErasure(later.id()).isDone()).isTrue();
        assertThat(readAll(stream))
                .filteredOn(event -> "k1".equals(event.key()))
                .hasSize(20)
                .allMatch(StoredEvent::isErased);
        assertNoFileContains(mark("k1"));
    }

    /** A dump keeps the transaction ids of its cluster, and a new cluster counts from the beginning. */
    @Test
    void erase_restoredErasureHasNotEnded_isResumedAndReplaced() throws SQLException {
        open(1);
        publish(20, 3, new Random(2));
        Erasure resumed;
        try (Connection reader = database().getConnection()) {
            reader.setAutoCommit(false);
            reader.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            Sql.query(reader, "SELECT count(*) FROM eventsql.stream");
            resumed = eventSql.erase(ErasureSpec.of(stream, "k1").withTimeout(Duration.ZERO));
            eventSql.erase(ErasureSpec.of(stream, "k2").withTimeout(Duration.ZERO));
            reader.rollback();
            reader.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        }
        String restored = "(pg_current_xact_id()::text::bigint + 1000000000)::text::xid8";
        assertThat(Sql.query(
                        database(),
                        "UPDATE eventsql.erasure_file f SET erased_in = " + restored
                                + " FROM eventsql.erasure e JOIN eventsql.stream s USING (stream_id)"
                                + " WHERE e.erasure_id = f.erasure_id AND s.name = ? RETURNING f.table_name",
                        stream))
                .isNotEmpty();
        Sql.execute(
                database(),
                "UPDATE eventsql.outbox_erasure SET erased_in = " + restored + " WHERE stream = '" + stream + "'");

        assertThat(eventSql.resumeErasure(resumed.id()).isDone()).isTrue();
        assertThat(eventSql.erase(ErasureSpec.of(stream, "k2").withTimeout(Duration.ofSeconds(20)))
                        .isDone())
                .isTrue();
        assertNoFileContains(mark("k1"));
        assertNoFileContains(mark("k2"));
    }

    /** The tables of an outbox have no index of keys, so a step may read for long. */
    @Test
    void erase_stepInTheOutboxTakesLongerThanTheNetworkTimeout_isDone() throws SQLException {
        open(1);
        eventSql.publisher()
                .schedule(stream, Event.ofText("k1", mark("k1")), Instant.now().plusSeconds(3_600));
        Sql.execute(
                database(),
                "CREATE FUNCTION delay() RETURNS trigger LANGUAGE plpgsql AS $$"
                        + " BEGIN PERFORM pg_sleep(4); RETURN OLD; END $$",
                "CREATE TRIGGER delay BEFORE DELETE ON eventsql.scheduled_event"
                        + " FOR EACH ROW WHEN (OLD.key = 'k1') EXECUTE FUNCTION delay()");
        try (EventSql impatient = cluster.open(settings -> settings.networkTimeout(Duration.ofSeconds(2)))) {
            Erasure erasure = impatient.erase(ErasureSpec.of(stream, "k1").withTimeout(Duration.ofSeconds(20)));
            assertThat(erasure.isDone()).as("%s", erasure).isTrue();
        }
        assertThat(Sql.queryLong(database(), "SELECT count(*) FROM eventsql.scheduled_event"))
                .isZero();
        assertNoFileContains(mark("k1"));
    }
}
