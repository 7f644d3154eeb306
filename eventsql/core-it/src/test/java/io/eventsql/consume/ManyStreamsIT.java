package io.eventsql.consume;

import static org.assertj.core.api.Assertions.as;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.STRING;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.FunctionCalls;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.postgresql.ds.PGSimpleDataSource;

/** One process consumes many streams, of both storages: one statement asks for the new events of all. */
class ManyStreamsIT {
    private static final int STREAMS = 16;
    private static final int ROUNDS = 20;

    private static void publishToAll(EventSql eventSql, List<String> to, int number) {
        CompletableFuture.allOf(to.stream()
                        .map(stream -> eventSql.publisher().publishAsync(stream, Event.ofText("key", "" + number)))
                        .toArray(CompletableFuture[]::new))
                .join();
    }

    @Test
    void oneEventInEach_areFetchedTogether() throws SQLException {
        FunctionCalls calls = FunctionCalls.inNewDatabase();
        List<String> streams =
                IntStream.range(0, STREAMS).mapToObj(i -> "many" + i).toList();
        Map<String, Handled> handled = new HashMap<>();
        try (HikariDataSource pool = TestCluster.pool(calls.database());
                EventSql eventSql = EventSql.builder(pool).build()) {
            for (int i = 0; i < STREAMS; i++) {
                eventSql.createStream(StreamSpec.of(streams.get(i))
                        .withPartitions(1 + i % 2)
                        .withStorage(i % 4 == 0 ? Storage.BLOCKS : Storage.ROWS));
                Handled ofStream = new Handled();
                handled.put(streams.get(i), ofStream);
                eventSql.subscribe(ConsumerSpec.of(streams.get(i), "c"), ofStream::add);
            }
            for (int round = 1; round <= ROUNDS; round++) {
                publishToAll(eventSql, streams, round);
                int expected = round;
                handled.values().forEach(ofStream -> ofStream.awaitSize(expected));
            }
        }
        handled.values().forEach(ofStream -> {
            ofStream.assertOnceAndInOrder();
            assertThat(ofStream.texts())
                    .containsExactlyElementsOf(IntStream.rangeClosed(1, ROUNDS)
                            .mapToObj(Integer::toString)
                            .toList());
        });
        calls.awaitReported();
        // Fetched by themselves, each event would take a call of fetch_v2 or fetch_blocks_v1 at least.
        long together = calls.count("^fetch(_block)?_streams_v1$");
        assertThat(together).isBetween((long) ROUNDS, STREAMS * ROUNDS - 1L);
        assertThat(calls.count("^fetch_v2$"))
                .as("pages of streams that were fetched alone")
                .isLessThan(STREAMS * ROUNDS / 4L);
    }

    /** A database without an encoding stores any bytes as text. A row that cannot be sent fails the fetch of all streams. */
    @Test
    void rowsOfOneStreamCannotBeRead_allOthersAreHandled() throws SQLException {
        PGSimpleDataSource admin = (PGSimpleDataSource) TestCluster.server().adminDataSource();
        Sql.execute(
                admin,
                "CREATE DATABASE many_bytes TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'");
        PGSimpleDataSource anyBytes = new PGSimpleDataSource();
        anyBytes.setURL(admin.getUrl());
        anyBytes.setDatabaseName("many_bytes");
        anyBytes.setUser(admin.getUser());
        anyBytes.setPassword(admin.getPassword());
        try (HikariDataSource bytesPool = TestCluster.pool(anyBytes);
                EventSql process = EventSql.builder(bytesPool).build()) {
            List<String> names = List.of("bytes", "text0", "text1", "text2");
            names.forEach(name ->
                    process.createStream(StreamSpec.of(name).withPartitions(1).withStorage(Storage.ROWS)));
            Sql.execute(
                    bytesPool,
                    """
                    CREATE FUNCTION public.spoil() RETURNS trigger LANGUAGE plpgsql AS $$
                    BEGIN
                        NEW.key := CASE WHEN NEW.event_offset % 3 = 1 THEN chr(255) ELSE NEW.key END;
                        RETURN NEW;
                    END $$""",
                    "CREATE TRIGGER spoil BEFORE INSERT ON eventsql.events_bytes"
                            + " FOR EACH ROW EXECUTE FUNCTION public.spoil()");
            Map<String, Handled> ofStreams = new HashMap<>();
            for (String name : names) {
                Handled ofStream = new Handled();
                ofStreams.put(name, ofStream);
                process.subscribe(
                        ConsumerSpec.of(name, "c").withFailurePolicy(FailurePolicy.DEAD_LETTER), ofStream::add);
            }
            for (int round = 0; round < 9; round++) {
                publishToAll(process, names, round);
            }
            names.forEach(name -> ofStreams.get(name).awaitSize(name.equals("bytes") ? 6 : 9));
            assertThat(ofStreams.get("bytes").texts()).containsExactly("0", "2", "3", "5", "6", "8");
            assertThat(ofStreams.get("text1").texts()).containsExactly("0", "1", "2", "3", "4", "5", "6", "7", "8");
        }
    }

    /** A fetch waits for seconds before it fails, as long as another session changes the stream's table. */
    @Test
    @Timeout(60)
    void tableOfOneStreamIsLocked_othersAreHandled() throws SQLException {
        int events = 400;
        List<String> streams = IntStream.range(0, 6).mapToObj(i -> "part" + i).toList();
        Map<String, Handled> handled = new HashMap<>();
        try (TestCluster cluster = TestCluster.ofShards(1);
                CapturedLog log = CapturedLog.ofConsuming();
                Connection change = cluster.dataSources().getFirst().getConnection()) {
            EventSql eventSql = cluster.open();
            for (String stream : streams) {
                eventSql.createStream(StreamSpec.of(stream).withPartitions(1).withStorage(Storage.ROWS));
                eventSql.publisher()
                        .publishAll(
                                stream,
                                IntStream.range(0, events)
                                        .mapToObj(i -> Event.ofText("key", "" + i))
                                        .toList());
            }
            change.setAutoCommit(false);
            try (Statement lock = change.createStatement()) {
                lock.execute("LOCK TABLE eventsql.events_part0 IN ACCESS EXCLUSIVE MODE");
            }
            for (String stream : streams) {
                Handled ofStream = new Handled();
                handled.put(stream, ofStream);
                eventSql.subscribe(ConsumerSpec.of(stream, "c").withPageEvents(10), ofStream::add);
            }

            streams.subList(1, streams.size())
                    .forEach(stream -> handled.get(stream).awaitSize(events));
            assertThat(handled.get("part0").size()).isZero();
            change.rollback();
            handled.get("part0").awaitSize(events);
            assertThat(log.lines("WARN Fetching stream part0 from")).hasSize(1);
            assertThat(log.lines("INFO Fetching stream part0 from"))
                    .singleElement(as(STRING))
                    .as("few attempts, because each is followed by a pause for the others")
                    .matches(".* after [1-5] failed attempts");
        }
        handled.values().forEach(Handled::assertOnceAndInOrder);
    }
}
