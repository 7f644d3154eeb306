package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.type;

import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The settings of a stream change while it is in use, in this process and in others. Two shards. */
@Timeout(120)
class AlterStreamIT {
    private static final Retention RETENTION = Retention.FOREVER
            .withMaxAge(Duration.ofMillis(86_400_123))
            .withMaxBytes(1L << 40)
            .withMaxEvents(5_000_000_000L)
            .withExpireHandled()
            .withAbandonedAfter(Duration.ofDays(3));

    private static TestCluster cluster;
    private static EventSql eventSql;

    private final String name = TestStreams.newName();
    private final StreamSpec stream = StreamSpec.of(name).withPartitions(1).withSegmentSize(1_000);

    @BeforeAll
    static void open() {
        cluster = TestCluster.ofShards(2);
        eventSql = cluster.open();
    }

    @AfterAll
    static void close() {
        cluster.close();
    }

    private StreamSpec stored(EventSql instance) {
        return instance.streams().stream()
                .filter(each -> each.name().equals(name))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void alterStream_allSettings_areStoredOnEveryShard() throws SQLException {
        eventSql.createStream(stream);
        StreamSpec changed = stream.withSegmentSize(5_000).asJson().withRetention(RETENTION);
        eventSql.alterStream(changed);
        assertThat(stored(eventSql)).isEqualTo(changed);
        assertThat(cluster.sum("SELECT count(*) FROM eventsql.stream WHERE segment_size = 5000 AND json"
                        + " AND retention = interval '1 day 123 ms' AND expire_handled AND name = '" + name + "'"))
                .isEqualTo(2);
        eventSql.publisher().publish(name, Event.ofText("k", "{\"n\": 7}"));
        assertThat(cluster.sum("SELECT coalesce(sum((value ->> 'n')::int), 0) FROM eventsql.events_" + name + "__json"))
                .isEqualTo(7);

        eventSql.alterStream(stream);
        assertThat(stored(eventSql)).isEqualTo(stream);
        assertThat(cluster.sum("SELECT count(*) FROM pg_class WHERE relname = 'events_" + name + "__json'"))
                .isZero();
    }

    @Test
    void createStream_newWithRetention_storesIt() {
        eventSql.createStream(stream.withRetention(RETENTION));
        assertThat(stored(eventSql)).isEqualTo(stream.withRetention(RETENTION));
    }

    @Test
    void createStream_existsWithOtherSettings_keepsAndNamesThem() {
        eventSql.createStream(stream);
        try (CapturedLog log = CapturedLog.of("shard")) {
            eventSql.createStream(stream);
            assertThat(log.lines(name)).isEmpty();
            eventSql.createStream(stream.withSegmentSize(500).asJson().withRetention(RETENTION));
            assertThat(log.lines(name))
                    .singleElement()
                    .asString()
                    .contains("segmentSize is 1000, not 500", "json", "retention");
        }
        assertThat(stored(eventSql)).isEqualTo(stream);
    }

    @Test
    void alterStream_otherPartitionsOrUnknown_isRejected() {
        assertThatThrownBy(() -> eventSql.alterStream(stream)).isInstanceOf(UnknownStreamException.class);
        eventSql.createStream(stream);
        assertThatThrownBy(() -> eventSql.alterStream(stream.withPartitions(2).withSegmentSize(300)))
                .asInstanceOf(type(InvalidInputException.class))
                .extracting(InvalidInputException::field)
                .isEqualTo("stream.partitions");
        assertThat(stored(eventSql)).isEqualTo(stream);
    }

    @Test
    void alterStream_byAnotherProcess_publishesReadsAndClears() throws SQLException {
        eventSql.createStream(stream);
        EventPosition first = eventSql.publisher().publish(name, Event.ofText("k", "0"));
        cluster.execute(
                "UPDATE eventsql.stream SET segment_size = 300 WHERE name = '" + name + "'"); // as another process

        assertThat(eventSql.read(first, 10)).hasSize(1);
        eventSql.publisher().publish(name, Event.ofText("k", "1"));
        assertThat(eventSql.previewClear(name).events()).isEqualTo(2);
        eventSql.clear(name, eventSql.previewClear(name).confirmation());
        eventSql.publisher().publish(name, Event.ofText("k", "2"));
    }

    /** Calls that were routed by former settings share batches with later ones. */
    @Test
    void alterStream_publishersAndConsumersRun_losesAndDoublesNothing() throws Exception {
        eventSql.createStream(stream);
        EventSql other = cluster.open();
        Handled handled = new Handled();
        AtomicBoolean ended = new AtomicBoolean();
        try (Subscription member = other.subscribe(ConsumerSpec.of(name, "c"), handled::add);
                ExecutorService threads = Executors.newFixedThreadPool(4)) {
            List<Future<List<EventPosition>>> publishing = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                EventSql instance = i % 2 == 0 ? eventSql : other;
                publishing.add(threads.submit(() -> {
                    List<EventPosition> positions = new ArrayList<>();
                    while (!ended.get()) {
                        positions.add(instance.publisher().publish(name, Event.ofText("v")));
                    }
                    return positions;
                }));
            }
            for (int i = 0; i < 16; i++) {
                StreamSpec changed = stream.withSegmentSize(100 + i)
                        .withRetention(Retention.FOREVER.withMaxAge(Duration.ofDays(1 + i)));
                (i % 3 == 0 ? other : eventSql).alterStream(i % 2 == 0 ? changed.asJson() : changed);
            }
            ended.set(true);
            List<EventPosition> positions = new ArrayList<>();
            for (Future<List<EventPosition>> each : publishing) {
                positions.addAll(each.get());
            }
            handled.awaitSize(positions.size()).assertOnceAndInOrder();
            for (int shard = 0; shard < 2; shard++) {
                int of = shard;
                List<Long> offsets = positions.stream()
                        .filter(position -> position.shard() == of)
                        .map(EventPosition::offset)
                        .sorted()
                        .toList();
                assertThat(offsets)
                        .isEqualTo(LongStream.range(0, offsets.size()).boxed().toList());
            }
        }
        assertThat(Sql.query(
                        cluster.dataSources().getFirst(),
                        "SELECT segment_size FROM eventsql.stream WHERE name = ?",
                        name))
                .containsExactly("115");
    }
}
