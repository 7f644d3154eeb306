package io.eventsql.reader;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.eventsdb.StandbyMode;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Reading from a hot standby, whose primary keeps running. */
@Timeout(120)
class StandbyReadIT {
    private static EmbeddedEventsDb server;
    private static DataSource standby;
    private static HikariDataSource pool;
    private static EventSql eventSql;

    @BeforeAll
    static void start() {
        server = EmbeddedEventsDb.builder()
                .setting("shared_buffers", "32MB")
                .standbys(StandbyMode.ASYNCHRONOUS)
                .start();
        standby = server.standbys().get(0).adminDataSource();
        pool = TestDatabases.pool(server.dataSource());
        eventSql = EventSql.builder(pool).build();
    }

    @AfterAll
    static void stop() {
        try (EmbeddedEventsDb closed = server) {
            eventSql.close();
            pool.close();
        }
    }

    private static void publish(String stream, int from, int to) {
        eventSql.publisher()
                .publishAll(
                        stream,
                        IntStream.range(from, to)
                                .mapToObj(i -> Event.ofText("k" + i, "" + i))
                                .toList());
    }

    /** Returns when the standby has replayed what the primary has stored. */
    private static void awaitReplay() {
        String lsn = TestDatabases.query(server.adminDataSource(), "SELECT pg_current_wal_flush_lsn()")
                .get(0);
        String isReplayed = "SELECT pg_last_wal_replay_lsn() >= ?::pg_lsn";
        while (!TestDatabases.query(standby, isReplayed, lsn).contains("t")) {
            Thread.onSpinWait();
        }
    }

    private static StreamPartition create(String stream, Storage storage) {
        eventSql.createStream(
                StreamSpec.of(stream).withPartitions(1).withSegmentSize(100).withStorage(storage));
        return new StreamPartition(stream, 0, 0);
    }

    @ParameterizedTest
    @EnumSource(Storage.class)
    void cursor_onStandby_followsThePrimary(Storage storage) throws InterruptedException {
        String stream = "followed_" + storage.name().toLowerCase(Locale.ROOT);
        create(stream, storage);
        publish(stream, 0, 160);
        awaitReplay();
        try (EventReader reader = EventReader.open(List.of(standby))) {
            StreamCursor cursor = reader.cursor(CursorSpec.of(stream).from(StreamPosition.at(Instant.EPOCH)));
            List<LogEvent> events = new ArrayList<>(cursor.poll(Duration.ZERO));
            publish(stream, 160, 250);
            while (events.size() < 250) {
                events.addAll(cursor.poll(Duration.ofSeconds(1)));
            }
            assertThat(events)
                    .extracting(LogEvent::text)
                    .isEqualTo(IntStream.range(0, 250).mapToObj(i -> "" + i).toList());
        }
    }

    @Test
    void read_positionOfThePrimary_continuesOnTheStandby() {
        StreamPartition partition = create("switched", Storage.ROWS);
        publish("switched", 0, 30);
        awaitReplay();
        ReadPosition position;
        try (EventReader primary = EventReader.open(List.of(server.dataSource()))) {
            position = primary.read(partition, ReadPosition.at(0)).next();
        }
        try (EventReader reader = EventReader.open(List.of(standby))) {
            PartitionPage page = reader.read(partition, position);
            assertThat(page.next().incarnation()).isNotEqualTo(position.incarnation());
            assertThat(page.next().offset()).isGreaterThanOrEqualTo(position.offset());

            // An offset that the standby has not replayed yet may still come; the primary knows better.
            ReadPosition ahead = new ReadPosition(40, position.incarnation(), 39, position.lastPublishedAt());
            assertThat(reader.read(partition, ahead)).isEqualTo(new PartitionPage(partition, List.of(), ahead, true));

            // So may a partition of a stream that has grown; its position may be of another standby.
            StreamPartition grown = new StreamPartition("switched", 0, 1);
            ReadPosition sameHistory = new ReadPosition(40, page.next().incarnation(), 39, position.lastPublishedAt());
            for (ReadPosition each : List.of(ahead, sameHistory)) {
                assertThat(reader.read(grown, each)).isEqualTo(new PartitionPage(grown, List.of(), each, true));
            }
        }
        try (EventReader primary = EventReader.open(List.of(server.dataSource()))) {
            ReadPosition ahead = new ReadPosition(40, "other", 39, position.lastPublishedAt());
            assertThatExceptionOfType(HistoryLostException.class).isThrownBy(() -> primary.read(partition, ahead));
        }
    }

    @Test
    void read_standbyRestarted_continues() {
        StreamPartition partition = create("restarted", Storage.ROWS);
        publish("restarted", 0, 10);
        awaitReplay();
        try (EventReader reader = EventReader.open(List.of(standby))) {
            ReadPosition position = reader.read(partition, ReadPosition.at(0)).next();
            server.standbys().get(0).stop();
            assertThatExceptionOfType(DatabaseUnavailableException.class)
                    .isThrownBy(() -> reader.read(partition, position));
            server.standbys().get(0).restart();
            publish("restarted", 10, 20);
            awaitReplay();
            assertThat(reader.read(partition, position).events()).hasSize(10);
        }
    }
}
