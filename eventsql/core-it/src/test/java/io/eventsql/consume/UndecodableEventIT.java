package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.ParkedEvent;
import io.eventsql.PartitionState;
import io.eventsql.PartitionState.Status;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.UndecodableEventException;
import io.eventsql.fixture.ConsumerFixture;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;

/** Stored events that cannot be decoded: only they fail, by the failure policy, and nothing else waits for them. */
class UndecodableEventIT extends ConsumerFixture {
    @BeforeEach
    void requireRows() {
        assumeThat(TestStreams.areBlocks()).as("changes single events by SQL").isFalse();
    }

    private void setHeaders(String stream, String headers, String condition) throws SQLException {
        cluster.execute("UPDATE eventsql.events_" + stream + " SET headers = " + headers + " WHERE " + condition);
    }

    private List<ParkedEvent> parkedEvents(String stream) {
        return eventSql.consumer(stream, "c").parkedEvents(1_000);
    }

    @ParameterizedTest
    @ValueSource(strings = {"null", "[1]"})
    void stop_headersAreNoObject_stopsAtTheEventAndOthersContinue(String headers) throws SQLException {
        String stream = newStream();
        publish(stream, 0, 100, 40);
        setHeaders(stream, "'" + headers + "'", "partition = 1 AND event_offset = 2");
        Handled handled = new Handled();
        Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
        EventSql process = EventSql.builder(cluster.dataSources())
                .listener(new ConsumerListener() {
                    @Override
                    public void handlerFailed(
                            StoredEvent event, String consumer, int attempt, Throwable error, boolean willRetry) {
                        failures.add(error);
                    }
                })
                .build();
        try (process;
                Subscription ignored = process.subscribe(consumer(stream), handled::add)) {
            awaitStatus(stream, Status.STOPPED);
            long others = cluster.sum("SELECT count(*) FROM eventsql.events_" + stream + " WHERE partition <> 1");
            handled.awaitSize((int) others + 2);
            PartitionState stopped = state(stream).get(1);
            assertThat(stopped.status()).isEqualTo(Status.STOPPED);
            assertThat(stopped.nextOffset()).isEqualTo(2);
            assertThat(stopped.error()).contains("offset 2").contains("headers are not a JSON object");
            assertThat(failures)
                    .singleElement()
                    .satisfies(failure -> assertThat(failure)
                            .isInstanceOfSatisfying(UndecodableEventException.class, e -> {
                                assertThat(e.position()).isEqualTo(new EventPosition(stream, 0, 1, 2));
                                assertThat(e.storedHeaders()).isEqualTo(headers);
                            }));

            setHeaders(stream, "NULL", "partition = 1 AND event_offset = 2"); // repaired
            eventSql.consumer(stream, "c").resume();
            handled.awaitSize(100);
            awaitLag(stream, 0);
        }
        handled.assertOnceAndInOrder();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void deadLetter_headersAreNoObject_areCopiedAsStored(boolean keyParallel) throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 50, 10);
        setHeaders(stream, "'[\"a\"]'", "event_offset = 20");
        Handled handled = new Handled();
        Handled deadLetters = new Handled();
        try (Subscription ignored = eventSql.subscribe(
                        consumer(stream)
                                .withFailurePolicy(FailurePolicy.DEAD_LETTER)
                                .withKeyConcurrency(keyParallel ? 4 : 1),
                        handled::add);
                Subscription reader =
                        eventSql.subscribe(ConsumerSpec.of(stream + "_dead_letter", "reader"), deadLetters::add)) {
            awaitLag(stream, 0);
            assertThat(handled.size()).isEqualTo(49);
            StoredEvent copy = deadLetters.awaitSize(1).events().getFirst();
            assertThat(copy.text()).isEqualTo("20");
            assertThat(copy.key()).isEqualTo("key-0");
            assertThat(copy.headers())
                    .containsEntry("eventsql-dead-letter-headers", "[\"a\"]")
                    .containsEntry("eventsql-dead-letter-offset", "20");
            assertThat(parkedEvents(stream)).singleElement().satisfies(parked -> {
                assertThat(parked.event().text()).isEqualTo("20");
                assertThat(parked.error()).contains("headers are not a JSON object");
            });
            assertThat(cluster.sum("SELECT count(*) FROM eventsql.parked_event WHERE headers::text = '[\"a\"]'"))
                    .isPositive();

            assertThat(eventSql.consumer(stream, "c").redrive()).isEqualTo(1);
            await().atMost(Duration.ofSeconds(120))
                    .until(() -> parkedEvents(stream).getFirst().attempts() == 2);
            assertThat(handled.size()).isEqualTo(49); // it still cannot be decoded
            cluster.execute("UPDATE eventsql.parked_event SET headers = NULL WHERE headers::text = '[\"a\"]'");
            eventSql.consumer(stream, "c").redrive();
            handled.awaitSize(50);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void parkKey_headersAreNoObject_keyKeepsItsOrder(boolean keyParallel) throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 60, 6);
        setHeaders(stream, "'null'", "event_offset IN (13, 25)"); // both of key-1
        Handled handled = new Handled();
        ConsumerSpec spec =
                consumer(stream).withFailurePolicy(FailurePolicy.PARK_KEY).withKeyConcurrency(keyParallel ? 4 : 1);
        try (Subscription ignored = eventSql.subscribe(spec, handled::add)) {
            awaitLag(stream, 0);
            assertThat(parkedEvents(stream))
                    .extracting(parked -> parked.event().text())
                    .containsExactly("13", "19", "25", "31", "37", "43", "49", "55");
            assertThat(Sql.query(cluster.dataSources().getFirst(), """
                            SELECT event_offset FROM eventsql.parked_event JOIN eventsql.consumer USING (consumer_id)
                            JOIN eventsql.stream s USING (stream_id)
                            WHERE headers::text = 'null' AND s.name = ? ORDER BY 1""", stream)).containsExactly("13", "25");
            cluster.execute("UPDATE eventsql.parked_event SET headers = NULL WHERE headers::text = 'null'");
            eventSql.consumer(stream, "c").redrive();
            handled.awaitSize(60);
        }
        assertOrderOfKeys(handled.events());
    }

    @Test
    void batch_oneEventIsUndecodable_othersAreHandledInBatches() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 90, 10);
        setHeaders(stream, "'null'", "event_offset IN (0, 40, 41, 89)");
        List<List<String>> batches = Collections.synchronizedList(new ArrayList<>());
        try (Subscription ignored =
                eventSql.subscribeBatch(consumer(stream).withFailurePolicy(FailurePolicy.DEAD_LETTER), events -> {
                    batches.add(events.stream().map(StoredEvent::text).toList());
                })) {
            awaitLag(stream, 0);
        }
        assertThat(batches).containsExactly(texts(1, 40), texts(42, 89));
        assertThat(parkedEvents(stream)).hasSize(4);
    }

    @Test
    void transactional_oneEventIsUndecodable_othersAreHandledOnce() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 20, 10);
        setHeaders(stream, "'null'", "event_offset = 7");
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribeTransactional(
                consumer(stream).withFailurePolicy(FailurePolicy.DEAD_LETTER),
                (event, connection) -> handled.add(event))) {
            awaitLag(stream, 0);
        }
        assertThat(handled.texts()).hasSize(19).doesNotContain("7").isSubsetOf(texts(0, 20));
    }

    /** A database without an encoding stores any bytes as text. */
    @Test
    void deadLetter_keyIsInvalidText_othersAreHandled() throws SQLException {
        Sql.execute(
                TestCluster.server().adminDataSource(),
                "CREATE DATABASE any_bytes TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'");
        PGSimpleDataSource database = new PGSimpleDataSource();
        PGSimpleDataSource admin = (PGSimpleDataSource) TestCluster.server().adminDataSource();
        database.setURL(admin.getUrl());
        database.setDatabaseName("any_bytes");
        database.setUser(admin.getUser());
        database.setPassword(admin.getPassword());
        try (HikariDataSource pool = TestCluster.pool(database);
                EventSql process = EventSql.builder(pool).build()) {
            process.createStream(TestStreams.of("bytes").withPartitions(1));
            process.publisher()
                    .publishAll(
                            "bytes", List.of(Event.ofText("a", "1"), Event.ofText("b", "2"), Event.ofText("a", "3")));
            Sql.execute(pool, "UPDATE eventsql.events_bytes SET key = chr(255) WHERE event_offset = 1");
            Handled handled = new Handled();
            ConsumerSpec spec = consumer("bytes").withFailurePolicy(FailurePolicy.DEAD_LETTER);
            try (Subscription ignored = process.subscribe(spec, handled::add)) {
                handled.awaitSize(2);
                await().atMost(Duration.ofSeconds(120))
                        .until(() ->
                                process.consumer("bytes", "c").parkedEvents(10).size() == 1);
            }
            assertThat(handled.texts()).containsExactly("1", "3");
            assertThat(process.read(new EventPosition("bytes", 0, 0, 0), 10))
                    .extracting(StoredEvent::text)
                    .containsExactly("1");
            EventPosition unreadable = new EventPosition("bytes", 0, 0, 1);
            assertThatExceptionOfType(UndecodableEventException.class)
                    .isThrownBy(() -> process.read(unreadable, 10))
                    .satisfies(e -> assertThat(e.position()).isEqualTo(unreadable));
            assertThat(process.read(new EventPosition("bytes", 0, 0, 2), 10)).hasSize(1);
        }
    }

    @Test
    void read_headersAreNoObject_endsBeforeTheEventAndFailsAtIt() throws SQLException {
        String stream = newStream(1);
        publish(stream, 0, 10, 1);
        setHeaders(stream, "'null'", "event_offset = 4");
        assertThat(eventSql.read(new EventPosition(stream, 0, 0, 0), 10)).hasSize(4);
        EventPosition undecodable = new EventPosition(stream, 0, 0, 4);
        assertThatExceptionOfType(UndecodableEventException.class)
                .isThrownBy(() -> eventSql.read(undecodable, 10))
                .satisfies(e -> assertThat(e.position()).isEqualTo(undecodable))
                .withMessageContaining("offset 4");
        assertThat(eventSql.read(new EventPosition(stream, 0, 0, 5), 10)).hasSize(5);
    }
}
