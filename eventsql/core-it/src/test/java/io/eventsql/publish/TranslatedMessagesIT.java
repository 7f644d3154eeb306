package io.eventsql.publish;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.proxy.TranslatingProxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

/**
 * Goal: the outcome of a publish does not depend on the language of the server ({@code lc_messages}). Method: a proxy
 * translates the severity and the text of every error and notice.
 */
@Timeout(120)
class TranslatedMessagesIT extends PublishFixture {
    private static final String WAITING_APPENDS = " FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            + " AND query LIKE '%append_v%' AND datname = current_database()";

    private TranslatingProxy proxy;
    private HikariDataSource pool;

    @BeforeEach
    void startProxy() throws SQLException {
        try (Connection connection = dataSource().getConnection()) {
            proxy = TranslatingProxy.to(connection.getMetaData().getURL().replaceFirst("[?].*", ""));
        }
        pool = Pools.pool(TestCluster.server(), proxy.jdbcUrl());
    }

    @AfterEach
    void stopProxy() throws Exception {
        pool.close();
        proxy.close();
    }

    /** Asserts that the last failed attempt had this SQLSTATE, and that its severity was translated. */
    private void assertFailed(String state, String severity) {
        await().until(() -> !recorder.failedAppends.isEmpty()); // listeners are called after the calls are completed
        ServerErrorMessage message = serverMessage(recorder.failedAppends.getLast());
        assertThat(message.getSQLState()).isEqualTo(state);
        assertThat(message.getSeverity()).isEqualTo(severity);
        assertThat(message.getMessage()).startsWith("übersetzt: ");
    }

    private static ServerErrorMessage serverMessage(Throwable failure) {
        for (@Nullable Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause instanceof PSQLException fromServer && fromServer.getServerErrorMessage() != null) {
                return fromServer.getServerErrorMessage();
            }
        }
        throw new AssertionError("no error of the server", failure);
    }

    @ParameterizedTest
    @ValueSource(strings = {"P0001", "XX000"})
    void publish_triggerRaisesException_callFailsAloneAtOnce(String state) throws Exception {
        EventSql eventSql = open(pool, settings());
        String stream = newStream(eventSql, 1);
        createTrigger(stream, "RAISE EXCEPTION 'no bad events' USING ERRCODE = '" + state + "'");
        List<CompletableFuture<EventPosition>> good = IntStream.range(0, 20)
                .mapToObj(i -> publish(eventSql, stream, "k" + i, "good"))
                .toList();

        assertThat(failureOf(publish(eventSql, stream, "k", "bad")))
                .isInstanceOf(EventNotStoredException.class)
                .hasMessageContaining("übersetzt: no bad events");

        assertFailed(state, "FEHLER");
        for (CompletableFuture<EventPosition> call : good) {
            get(call);
        }
        assertThat(storedValues(stream)).hasSize(20);
    }

    @ParameterizedTest
    @ValueSource(strings = {"NOTICE", "WARNING"})
    void publish_triggerReportsSomething_isStoredByOneAttempt(String level) throws Exception {
        EventSql eventSql = open(pool, settings());
        String stream = newStream(eventSql, 1);
        createTrigger(stream, "RAISE " + level + " 'a bad event'");

        assertThat(get(publish(eventSql, stream, "k", "bad")).offset()).isZero();

        eventSql.close(); // calls the listeners for everything before
        assertThat(recorder.failedAppends).isEmpty();
    }

    @Test
    void publish_segmentIsMissing_isAdded() throws Exception {
        EventSql eventSql = open(pool, settings());
        String stream = newStream(eventSql, 1);
        for (String segment : List.of("s0", "s1")) {
            Sql.execute(dataSource(), "DROP TABLE eventsql.events_" + stream + "__p0_" + segment);
        }

        assertThat(get(publish(eventSql, stream, "k", "x")).offset()).isZero();

        assertFailed("23514", "FEHLER");
    }

    /** Terminated, an append is in doubt; canceled, it is rolled back: both are repeated, and stored once. */
    @ParameterizedTest
    @CsvSource({"pg_terminate_backend, 57P01, FATAL", "pg_cancel_backend, 57014, FEHLER"})
    void publish_statementIsEnded_isRepeatedAndStoredOnce(String function, String state, String severity)
            throws Exception {
        EventSql eventSql = open(pool, settings());
        String stream = newStream(eventSql, 1);
        List<CompletableFuture<EventPosition>> calls = new ArrayList<>();
        whilePartitionsAreLocked(() -> {
            calls.add(publish(eventSql, stream, "k", "x"));
            await().until(() -> Sql.queryLong(dataSource(), "SELECT count(*)" + WAITING_APPENDS) == 1);
            Sql.query(dataSource(), "SELECT " + function + "(pid)" + WAITING_APPENDS);
            await().until(() -> !recorder.failedAppends.isEmpty());
        });

        assertThat(get(calls.getFirst()).offset()).isZero();

        assertFailed(state, severity);
        assertThat(storedValues(stream)).containsExactly("x");
    }
}
