package io.eventsql.publish;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventOutcomeUnknownException;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.fixture.DelegatingDataSource;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: an event that the application's triggers, constraints, indexes or limits reject fails alone and at once, with the
 * database's sentence, and what they merely report changes nothing. Method: calls gather in common batches while the
 * partitions are locked; the deadline is beyond what the test waits for.
 */
class RejectedEventsIT extends PublishFixture {
    /** Tests change the settings of sessions. */
    @AfterEach
    void closeConnections() {
        ((HikariDataSource) dataSource()).getHikariPoolMXBean().softEvictConnections();
    }

    /** The bad call fails with this sentence; calls around it, of the same and of another stream, are stored. */
    private EventSqlException assertFailsAlone(EventSql eventSql, String stream, Event bad, String sentence)
            throws Exception {
        String other = newStream(eventSql, 3);
        List<CompletableFuture<?>> good = new ArrayList<>();
        List<CompletableFuture<EventPosition>> failing = new ArrayList<>();
        whilePartitionsAreLocked(() -> {
            for (int i = 0; i < 20; i++) {
                if (i == 7 || i == 15) {
                    failing.add(eventSql.publisher().publishAsync(stream, bad));
                }
                good.add(publish(eventSql, stream, "k" + i % 5, "good " + i));
                good.add(publish(eventSql, other, "k" + i % 5, "good " + i));
            }
        });
        EventSqlException failure = null;
        for (CompletableFuture<EventPosition> future : failing) {
            failure = failureOf(future);
            assertThat(failure)
                    .isInstanceOf(EventNotStoredException.class)
                    .hasMessageContaining("rejected it after")
                    .hasMessageContaining(sentence)
                    .hasRootCauseInstanceOf(SQLException.class);
        }
        for (CompletableFuture<?> future : good) {
            get(future);
        }
        assertThat(storedValues(stream)).hasSize(20).allMatch(value -> value.startsWith("good"));
        assertThat(storedValues(other)).hasSize(20);
        return failure;
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "USING ERRCODE = '45000'", "USING ERRCODE = '54000'", "USING ERRCODE = 'QQ123'"})
    void publish_triggerRaisesException_callFailsAloneAtOnce(String errorCode) throws Exception {
        EventSql eventSql = open();
        String stream = newStream(eventSql, 3);
        createTrigger(stream, "RAISE EXCEPTION 'no bad events' " + errorCode);

        assertFailsAlone(eventSql, stream, Event.ofText("k1", "bad"), "no bad events");
    }

    /** The error of a partitioned table is that of a missing segment, but for the name of the table. */
    @Test
    void publish_triggerWritesToAPartitionThatTheApplicationLacks_callFailsAloneAtOnce() throws Exception {
        EventSql eventSql = open();
        String stream = newStream(eventSql, 3);
        Sql.execute(dataSource(), "CREATE TABLE public.audit (month int) PARTITION BY LIST (month)");
        createTrigger(stream, "INSERT INTO public.audit VALUES (13)");

        assertFailsAlone(eventSql, stream, Event.ofText("k1", "bad"), "no partition of relation \"audit\" found");
    }

    @Test
    void publish_indexCannotHoldHeader_callFailsAloneAtOnce() throws Exception {
        EventSql eventSql = open();
        String stream = newStream(eventSql, 3);
        Sql.execute(dataSource(), "CREATE INDEX ON eventsql.events_" + stream + " ((headers ->> 'trace'))");
        byte[] random = new byte[6_000];
        new Random(1).nextBytes(random); // cannot be compressed to the limit of an index entry
        StringBuilder large = new StringBuilder();
        for (byte b : random) {
            large.append((char) ('!' + (b & 0x3f)));
        }
        Event bad = new Event("k1", "large".getBytes(UTF_8), Map.of("trace", large.toString()));

        assertFailsAlone(eventSql, stream, bad, "index row");
    }

    @Test
    void publish_constraintOfTheApplication_callFailsAloneAtOnce() throws Exception {
        EventSql eventSql = open();
        String stream = newStream(eventSql, 3);
        Sql.execute(
                dataSource(),
                "ALTER TABLE eventsql.events_" + stream + " ADD CONSTRAINT no_bad CHECK (value <> 'bad')");

        assertFailsAlone(eventSql, stream, Event.ofText("k1", "bad"), "no_bad");
    }

    @ParameterizedTest
    @ValueSource(strings = {"NOTICE", "WARNING", "LOG"})
    void publish_triggerReportsSomething_isStoredByOneAttempt(String level) throws Exception {
        EventSql eventSql = open(preparing("SET client_min_messages = log"), settings());
        String stream = newStream(eventSql, 1);
        createTrigger(stream, "RAISE " + level + " 'a bad event'");

        assertThat(get(publish(eventSql, stream, "k", "bad")).offset()).isZero();

        eventSql.close(); // calls the listeners for everything before
        assertThat(recorder.failedAppends).isEmpty();
    }

    @Test
    void publish_serverLogsToClient_isStoredByOneAttempt() throws Exception {
        Sql.execute(
                TestCluster.server().adminDataSource(), "GRANT SET ON PARAMETER log_min_duration_statement TO PUBLIC");
        EventSql eventSql =
                open(preparing("SET client_min_messages = log; SET log_min_duration_statement = 0"), settings());
        String stream = newStream(eventSql, 1);

        assertThat(get(publish(eventSql, stream, "k", "logged")).offset()).isZero();

        eventSql.close(); // calls the listeners for everything before
        assertThat(recorder.failedAppends).isEmpty();
    }

    /** The statement of one event is always canceled, while the other append connection stores other events. */
    @Test
    void publish_statementOfOneEventAlwaysTimesOut_callFailsAloneAndOthersAreStored() throws Exception {
        EventSql eventSql = open(preparing("SET statement_timeout = '300ms'"), settings());
        String stream = newStream(eventSql, 2);
        createTrigger(stream, "PERFORM pg_sleep(60)");
        String otherKey = keyOfOtherPartition(eventSql, stream, "k1");
        AtomicBoolean done = new AtomicBoolean();
        CompletableFuture<Integer> others = CompletableFuture.supplyAsync(() -> {
            int stored = 0;
            while (!done.get()) {
                eventSql.publisher().publish(stream, Event.ofText(otherKey, "good"));
                stored++;
            }
            return stored;
        });

        EventSqlException failure = failureOf(publish(eventSql, stream, "k1", "bad"));
        done.set(true);

        assertThat(failure)
                .isInstanceOf(EventNotStoredException.class)
                .hasMessageContaining("statement timeout")
                .hasRootCauseInstanceOf(SQLException.class);
        assertThat(get(others)).isPositive();
        assertThat(storedValues(stream)).doesNotContain("bad");
    }

    /** With one append connection, calls of other keys are sent before the call that times out is repeated. */
    @Test
    void publish_statementOfOneEventTimesOutInCommonBatch_othersAreStoredAndLaterOnesOfItsKeyFollow() throws Exception {
        EventSql eventSql =
                open(preparing("SET statement_timeout = '300ms'"), settings().appendConnections(1));
        String stream = newStream(eventSql, 1);
        createTrigger(stream, "PERFORM pg_sleep(60)");
        List<CompletableFuture<EventPosition>> good = new ArrayList<>();
        List<CompletableFuture<EventPosition>> bad = new ArrayList<>();
        whilePartitionsAreLocked(() -> {
            bad.add(publish(eventSql, stream, "k0", "bad"));
            for (int i = 0; i < 8; i++) {
                good.add(publish(eventSql, stream, "k" + i % 4, "good " + i));
            }
        });

        assertThat(failureOf(bad.getFirst()))
                .isInstanceOf(EventNotStoredException.class)
                .hasMessageContaining("statement timeout");
        for (CompletableFuture<EventPosition> call : good) {
            get(call);
        }
        assertThat(storedValues(stream))
                .hasSize(8)
                .containsSubsequence("good 0", "good 4")
                .containsSubsequence("good 1", "good 5");
    }

    /** Without others there is no proof that the event is the reason, so the call waits for its deadline. */
    @Test
    void publish_allStatementsTimeOut_failsAtDeadlineAsNotStored() throws Exception {
        EventSql eventSql =
                open(preparing("SET statement_timeout = '100ms'"), settings().publishTimeout(Duration.ofSeconds(2)));
        String stream = newStream(eventSql, 1);
        createTrigger(stream, "PERFORM pg_sleep(60)");

        EventSqlException failure = failureOf(publish(eventSql, stream, "k1", "bad"));

        assertThat(failure).hasMessageContaining("statement timeout").hasMessageContaining("settings.publishTimeout");
    }

    private static String keyOfOtherPartition(EventSql eventSql, String stream, String key) throws Exception {
        int partition = get(publish(eventSql, stream, key, "first")).partition();
        for (int i = 0; ; i++) {
            if (get(publish(eventSql, stream, "o" + i, "first")).partition() != partition) {
                return "o" + i;
            }
        }
    }

    @Test
    void publish_pooledConnectionsAreReadOnly_areReplaced() throws Exception {
        EventSql eventSql = open();
        String stream = newStream(eventSql, 1);
        get(publish(eventSql, stream, "k", "before"));
        List<Connection> idle = new ArrayList<>();
        Collections.addAll(idle, dataSource().getConnection(), dataSource().getConnection());
        for (Connection connection : idle) { // as after a failover: they lead to a former primary
            prepared(connection, "SET default_transaction_read_only = on").close();
        }

        assertThat(get(publish(eventSql, stream, "k", "after")).offset()).isEqualTo(1);
    }

    @Test
    void publish_databaseIsReadOnly_failsAtDeadlineWithTheSentenceAndRecovers() throws Exception {
        AtomicBoolean isReadOnly = new AtomicBoolean();
        EventSql eventSql = open(
                preparing(() -> "SET default_transaction_read_only = " + isReadOnly),
                settings().publishTimeout(Duration.ofSeconds(2)));
        String stream = newStream(eventSql, 1);
        get(publish(eventSql, stream, "k", "before"));
        isReadOnly.set(true);

        EventSqlException failure = failureOf(publish(eventSql, stream, "k", "rejected"));

        assertThat(failure)
                // The last attempt may be under way at the deadline.
                .isInstanceOfAny(EventNotStoredException.class, EventOutcomeUnknownException.class)
                .hasMessageContaining("read-only transaction")
                .hasMessageContaining("settings.publishTimeout");
        isReadOnly.set(false);
        EventPosition stored = null;
        for (int i = 0; stored == null && i < 30; i++) {
            CompletableFuture<EventPosition> retry = publish(eventSql, stream, "k", "after");
            try {
                stored = get(retry);
            } catch (ExecutionException e) {
                assertThat(e).hasCauseInstanceOf(EventNotStoredException.class);
            }
        }
        assertThat(storedValues(stream)).containsExactly("before", "after");
    }

    /** Returns the pool, whose connections execute a statement when they are borrowed. */
    private DataSource preparing(String sql) {
        return preparing(() -> sql);
    }

    private DataSource preparing(Supplier<String> sql) {
        return new DelegatingDataSource(dataSource()) {
            @Override
            public Connection getConnection() throws SQLException {
                return prepared(super.getConnection(), sql.get());
            }
        };
    }

    private static Connection prepared(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
        return connection;
    }
}
