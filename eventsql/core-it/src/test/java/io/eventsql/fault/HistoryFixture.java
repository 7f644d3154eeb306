package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.Retention;
import io.eventsql.Settings;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.LostHistory;
import io.eventsql.fixture.LostHistory.Range;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestStreams;
import java.sql.SQLException;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/**
 * Base class of tests in which a database goes back in time, or only seems to, under running members and publishers: an
 * instance that records what is reported as lost, and streams with one partition.
 */
abstract class HistoryFixture {
    /** No lease expires while a restore holds its locks: what was not committed of that partition would be no loss. */
    static final Settings SETTINGS = Settings.builder()
            .publishTimeout(Duration.ofSeconds(60))
            .networkTimeout(Duration.ofSeconds(30))
            .lease(Duration.ofSeconds(60))
            .heartbeat(Duration.ofMillis(500))
            .build();

    static final String CONSUMER_ID = """
            SELECT c.consumer_id FROM eventsql.consumer c JOIN eventsql.stream s USING (stream_id)
            WHERE s.name = ? AND c.name = 'c'""";

    /** Of the database of the class that is being tested, which creates and closes it. */
    static HikariDataSource pool;

    final LostHistory lost = new LostHistory();
    EventSql eventSql;

    @BeforeEach
    void open() {
        eventSql = EventSql.builder(pool)
                .settings(SETTINGS)
                .listener(lost)
                .publishListener(lost)
                .build();
    }

    @AfterEach
    void close() {
        eventSql.close();
    }

    String newStream() {
        String name = TestStreams.newName();
        eventSql.createStream(TestStreams.of(name).withPartitions(1).withSegmentSize(1_000));
        return name;
    }

    /** Changes what a member need not know: it remembers the stream as it was when it began. */
    void alter(String stream) {
        eventSql.alterStream(TestStreams.of(stream)
                .withPartitions(1)
                .withSegmentSize(1_000)
                .withRetention(Retention.FOREVER.withMaxEvents(1_000_000)));
    }

    static List<EventPosition> publish(EventSql publisher, String stream, String prefix, int count) {
        return publisher
                .publisher()
                .publishAll(
                        stream,
                        IntStream.range(0, count)
                                .mapToObj(i -> Event.ofText("key", prefix + i))
                                .toList());
    }

    void awaitCommitted(String stream, long offset) {
        await().atMost(Duration.ofSeconds(120))
                .until(() -> eventSql.positions(stream, "c").stream().allMatch(p -> p.nextOffset() == offset));
    }

    /** Listeners of publishers are called by a thread of their own. */
    void assertPublishedLost(Range... ranges) {
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(lost.published()).containsExactlyInAnyOrder(ranges));
    }

    static Set<String> stored(String stream) throws SQLException {
        return new HashSet<>(Sql.query(pool, "SELECT convert_from(value, 'UTF8') FROM eventsql.events_" + stream));
    }

    static void awaitAllHandled(String stream, Handled handled) {
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(handled.texts()).containsAll(stored(stream)));
    }

    /** A member that hears of nothing by its heartbeats. */
    EventSql openWithRareHeartbeats() {
        return EventSql.builder(pool)
                .settings(Settings.builder()
                        .publishTimeout(Duration.ofSeconds(20))
                        .networkTimeout(Duration.ofSeconds(5))
                        .lease(Duration.ofSeconds(60))
                        .heartbeat(Duration.ofSeconds(20))
                        .build())
                .listener(lost)
                .publishListener(lost)
                .build();
    }

    static String consumerId(String stream) throws SQLException {
        return Sql.query(pool, CONSUMER_ID, stream).getFirst();
    }

    static ConsumerSpec rarelyCommitting(String stream) {
        return ConsumerSpec.of(stream, "c").withCommitInterval(Duration.ofSeconds(10));
    }
}
