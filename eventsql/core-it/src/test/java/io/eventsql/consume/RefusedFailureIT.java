package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.ParkedEvent;
import io.eventsql.PartitionState.Status;
import io.eventsql.RetryPolicy;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.ConsumerFixture;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: if the database refuses to store a dead letter, a parked event or a parked key, the partition stops with the
 * database's sentence, and continues when the cause is removed. A trigger's messages, and errors that pass, change nothing.
 * Method: triggers, constraints and indexes on the tables concerned, as an application may have them.
 */
class RefusedFailureIT extends ConsumerFixture {
    private static final Duration DEADLINE = Duration.ofSeconds(120);
    private static final String LONG_HEADER = randomText(20_000);

    private final List<String> cleanup = new ArrayList<>();

    private static String randomText(int length) {
        return new Random(1)
                .ints(length, 'a', 'z' + 1)
                .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append)
                .toString();
    }

    @AfterEach
    void cleanUp() throws SQLException {
        removeObstacles();
        Sql.execute(dataSource(), "DELETE FROM eventsql.parked_event", "DELETE FROM eventsql.parked_key");
    }

    private void removeObstacles() throws SQLException {
        Sql.execute(dataSource(), cleanup.toArray(String[]::new));
        cleanup.clear();
    }

    private DataSource dataSource() {
        return cluster.dataSources().getFirst();
    }

    private static String table(FailurePolicy policy, String table, String stream) {
        return policy == FailurePolicy.DEAD_LETTER && table.isEmpty()
                ? "eventsql.events_" + stream + "_dead_letter"
                : "eventsql." + table;
    }

    static Stream<Arguments> refusals() {
        return Stream.concat(
                Stream.of("P0001", "22012", "45000", "XX000", "UE123", "0A000", "check", "index")
                        .map(what ->
                                Arguments.of(FailurePolicy.DEAD_LETTER, "", what)), // the dead-letter stream's table
                Stream.of(
                        Arguments.of(FailurePolicy.DEAD_LETTER, "parked_event", "P0001"),
                        Arguments.of(FailurePolicy.DEAD_LETTER, "parked_event", "check"),
                        Arguments.of(FailurePolicy.PARK_KEY, "parked_event", "P0001"),
                        Arguments.of(FailurePolicy.PARK_KEY, "parked_event", "index"),
                        Arguments.of(FailurePolicy.PARK_KEY, "parked_key", "P0001"),
                        Arguments.of(FailurePolicy.PARK_KEY, "parked_key", "check")));
    }

    private void createObstacle(String table, String what) throws SQLException {
        switch (what) {
            case "check" -> {
                Sql.execute(
                        dataSource(),
                        "ALTER TABLE " + table + " ADD CONSTRAINT obstacle CHECK (length(key) > 3) NOT VALID");
                cleanup.add("ALTER TABLE " + table + " DROP CONSTRAINT obstacle");
            }
            case "index" -> {
                Sql.execute(dataSource(), "CREATE INDEX obstacle ON " + table + " ((headers ->> 'long'))");
                cleanup.add("DROP INDEX eventsql.obstacle");
            }
            default -> createTrigger(table, "RAISE EXCEPTION 'refused here' USING ERRCODE = '" + what + "';");
        }
    }

    private void createTrigger(String table, String statement) throws SQLException {
        Sql.execute(
                dataSource(),
                "CREATE OR REPLACE FUNCTION public.obstacle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " + statement
                        + " RETURN NEW; END $$",
                "CREATE TRIGGER obstacle BEFORE INSERT ON " + table
                        + " FOR EACH ROW EXECUTE FUNCTION public.obstacle()");
        cleanup.add("DROP TRIGGER obstacle ON " + table);
    }

    private ConsumerSpec failing(String stream, FailurePolicy policy) {
        return consumer(stream)
                .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                .withFailurePolicy(policy);
    }

    private static void publishBad(EventSql process, String stream, String header) {
        process.publisher()
                .publishAll(
                        stream,
                        List.of(Event.ofText("bad", "bad").withHeader("long", header), Event.ofText("good", "good")));
    }

    private static void failBad(StoredEvent event) {
        if (event.text().equals("bad")) {
            throw new IllegalStateException("cannot handle it");
        }
    }

    @ParameterizedTest(name = "{0} {1} {2}")
    @MethodSource("refusals")
    void store_refused_stopsWithTheDatabasesSentence(FailurePolicy policy, String table, String what)
            throws SQLException {
        String stream = newStream(1);
        List<String> stops = new CopyOnWriteArrayList<>();
        Handled handled = new Handled();
        try (EventSql process = EventSql.builder(cluster.dataSources())
                .settings(Settings.builder().maxHeadersBytes(64 << 10).build())
                .listener(new ConsumerListener() {
                    @Override
                    public void partitionStopped(ConsumerPartition partition, long nextOffset, String error) {
                        stops.add(error);
                    }
                })
                .build()) {
            process.subscribe(failing(stream, policy), event -> {
                failBad(event);
                handled.add(event);
            });
            createObstacle(table(policy, table, stream), what);
            publishBad(process, stream, LONG_HEADER);
            awaitStatus(stream, Status.STOPPED);
            assertThat(state(stream).getFirst().nextOffset()).isZero();
            String sentence = switch (what) {
                case "check" -> "violates check constraint";
                case "index" -> "index row";
                default -> "refused here";
            };
            assertThat(state(stream).getFirst().error()).contains(sentence);
            await().atMost(DEADLINE).until(() -> stops.size() == 1);
            assertThat(stops.getFirst()).contains(sentence);

            removeObstacles();
            process.consumer(stream, "c").resume();
            awaitLag(stream, 0);
            assertThat(handled.texts()).containsExactly("good");
            assertThat(parkedTexts(stream)).containsExactly("bad");
        }
    }

    private List<String> parkedTexts(String stream) {
        return eventSql.consumer(stream, "c").parkedEvents(10).stream()
                .map(ParkedEvent::event)
                .map(StoredEvent::text)
                .toList();
    }

    /** Shown before the fix: the partition stopped because of an internal error. */
    @ParameterizedTest(name = "used before: {0}")
    @ValueSource(booleans = {false, true})
    void deadLetter_streamWasDeletedByAnotherProcess_stopsUntilItIsCreatedAgain(boolean isUsedBefore) {
        String stream = newStream(1);
        String deadLetters = stream + "_dead_letter";
        try (EventSql process = cluster.open()) {
            process.subscribe(failing(stream, FailurePolicy.DEAD_LETTER), RefusedFailureIT::failBad);
            if (isUsedBefore) { // its id is known to the process
                publishBad(process, stream, "short");
                awaitLag(stream, 0);
            }
            eventSql.deleteStream(
                    deadLetters, eventSql.previewDeleteStream(deadLetters).confirmation());
            publishBad(process, stream, "short");
            awaitStatus(stream, Status.STOPPED);
            assertThat(state(stream).getFirst().error())
                    .startsWith("the database refused the dead letter of offset " + (isUsedBefore ? 2 : 0))
                    .contains(deadLetters);

            eventSql.createStream(StreamSpec.of(deadLetters).withPartitions(1));
            process.consumer(stream, "c").resume();
            awaitLag(stream, 0);
            assertThat(parkedTexts(stream)).containsOnly("bad").hasSize(isUsedBefore ? 2 : 1);
        }
    }

    @ParameterizedTest(name = "{0} {1}")
    @CsvSource({"DEAD_LETTER, INFO", "DEAD_LETTER, NOTICE", "DEAD_LETTER, WARNING", "PARK_KEY, WARNING"})
    void store_triggerRaisesMessage_isStoredOnce(FailurePolicy policy, String level) throws SQLException {
        String stream = newStream(1);
        try (Subscription ignored = eventSql.subscribe(failing(stream, policy), RefusedFailureIT::failBad)) {
            String table = policy == FailurePolicy.DEAD_LETTER ? "" : "parked_event";
            createTrigger(table(policy, table, stream), "RAISE " + level + " 'only a message';");
            publish(stream, 0, 1, 1);
            eventSql.publisher().publish(stream, Event.ofText("bad", "bad"));
            awaitLag(stream, 0);
            assertThat(parkedTexts(stream)).containsExactly("bad");
        }
        if (policy == FailurePolicy.DEAD_LETTER) {
            List<StoredEvent> deadLetters = eventSql.read(new EventPosition(stream + "_dead_letter", 0, 0, 0), 10);
            assertThat(deadLetters).extracting(StoredEvent::text).containsExactly("bad");
        }
    }

    @Test
    void store_statementTimeout_isRetried() throws SQLException {
        String stream = newStream(1);
        Sql.execute(dataSource(), "CREATE SEQUENCE public.tries");
        try (Subscription ignored =
                eventSql.subscribe(failing(stream, FailurePolicy.DEAD_LETTER), RefusedFailureIT::failBad)) {
            createTrigger(
                    table(FailurePolicy.DEAD_LETTER, "", stream),
                    "IF nextval('public.tries') <= 3 THEN"
                            + " RAISE EXCEPTION 'canceling statement due to statement timeout'"
                            + " USING ERRCODE = '57014'; END IF;");
            eventSql.publisher().publish(stream, Event.ofText("bad", "bad"));
            awaitLag(stream, 0);
        }
        assertThat(parkedTexts(stream)).containsExactly("bad");
        assertThat(Sql.queryLong(dataSource(), "SELECT last_value FROM public.tries"))
                .isEqualTo(4);
    }

    @Test
    void stop_leaseRowNamesNoOwner_isNotReportedUntilItIsStored() {
        String stream = newStream(1);
        Set<String> stops = ConcurrentHashMap.newKeySet();
        AtomicInteger calls = new AtomicInteger();
        try (EventSql process = EventSql.builder(cluster.dataSources())
                .listener(new ConsumerListener() {
                    @Override
                    public void partitionStopped(ConsumerPartition partition, long nextOffset, String error) {
                        stops.add("stopped in call " + calls.get());
                    }
                })
                .build()) {
            process.subscribe(failing(stream, FailurePolicy.STOP), event -> {
                if (calls.incrementAndGet() == 1) { // as an operator, or a restored table
                    Sql.execute(dataSource(), "UPDATE eventsql.consumer_partition SET member_id = NULL");
                }
                throw new IllegalStateException("cannot handle it");
            });
            publish(stream, 0, 1, 1);
            awaitStatus(stream, Status.STOPPED);
            await().atMost(DEADLINE).until(() -> !stops.isEmpty());
            assertThat(stops).containsExactly("stopped in call 2");
        }
    }

    @Test
    void deadLetter_storedOffsetIsAnotherOne_partitionIsTakenAnew() throws SQLException {
        String stream = newStream(1);
        List<String> lost = new CopyOnWriteArrayList<>();
        Handled handled = new Handled();
        try (EventSql process = EventSql.builder(cluster.dataSources())
                .listener(new ConsumerListener() {
                    @Override
                    public void partitionRevoked(ConsumerPartition partition, Reason reason) {
                        lost.add(reason.name());
                    }
                })
                .build()) {
            process.subscribe(failing(stream, FailurePolicy.DEAD_LETTER), event -> {
                failBad(event);
                handled.add(event);
            });
            publish(stream, 0, 10, 1);
            handled.awaitSize(10);
            awaitLag(stream, 0);
            Sql.execute(dataSource(), "UPDATE eventsql.consumer_offset SET next_offset = 4 WHERE next_offset = 10");
            publishBad(process, stream, "short");
            awaitLag(stream, 0);
            assertThat(parkedTexts(stream)).containsExactly("bad");
            assertThat(handled.texts())
                    .startsWith(texts(0, 10).toArray(String[]::new))
                    .endsWith("good");
            assertThat(handled.texts().subList(10, handled.size() - 1)).containsExactlyElementsOf(texts(4, 10));
            assertThat(lost).contains("HISTORY_CHANGED");
        }
    }
}
