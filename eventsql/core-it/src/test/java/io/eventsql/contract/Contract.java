package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.ConsumerPosition;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventPublisher;
import io.eventsql.EventSql;
import io.eventsql.Storage;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.TestCluster;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;

/**
 * Base class of the contract's classes: databases of their own, an instance over them, and shorthands to use it. Event
 * counts are small. The random seed is printed on failure and set by {@code -Deventsql.test.seed}.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@Timeout(120)
abstract class Contract {
    static final int PARTITIONS = 4;
    private static final Duration SHORT_RETRY = Duration.ofMillis(1);
    private static final AtomicInteger STREAMS = new AtomicInteger();

    final long seed = Long.getLong("eventsql.test.seed", System.nanoTime());
    final int shards;
    final Storage storage;
    TestCluster cluster;
    EventSql eventSql;
    EventPublisher publisher;

    Contract(int shards, Storage storage) {
        this.shards = shards;
        this.storage = storage;
    }

    @BeforeAll
    void open() {
        cluster = TestCluster.ofShards(shards);
        eventSql = cluster.open();
        publisher = eventSql.publisher();
    }

    @AfterAll
    void close() {
        cluster.close();
    }

    /** Creates a stream for one test. */
    final String newStream() {
        return newStream(StreamSpec.of("s" + STREAMS.incrementAndGet()).withPartitions(PARTITIONS));
    }

    final String newStream(StreamSpec spec) {
        eventSql.createStream(stored(spec));
        return spec.name();
    }

    /** Returns the definition with the storage under test. */
    final StreamSpec stored(StreamSpec spec) {
        return spec.withStorage(storage);
    }

    static String newName() {
        return "s" + STREAMS.incrementAndGet();
    }

    /** Reads the whole stream, ordered by shard, partition and offset. */
    final List<StoredEvent> readAll(String stream) {
        List<StoredEvent> all = new ArrayList<>();
        StreamSpec spec = eventSql.streams().stream()
                .filter(s -> s.name().equals(stream))
                .findFirst()
                .orElseThrow();
        for (int shard = 0; shard < shards; shard++) {
            for (int partition = 0; partition < spec.partitions(); partition++) {
                for (long next = 0; ; ) {
                    List<StoredEvent> page = eventSql.read(new EventPosition(stream, shard, partition, next), 1_000);
                    if (page.isEmpty()) {
                        break;
                    }
                    for (StoredEvent event : page) {
                        assertThat(event.position())
                                .as("gapless")
                                .isEqualTo(new EventPosition(stream, shard, partition, next++));
                    }
                    all.addAll(page);
                }
            }
        }
        return all;
    }

    final StoredEvent readOne(EventPosition position) {
        return eventSql.read(position, 1).getFirst();
    }

    final DataSource database(int shard) {
        return eventSql.shards().get(shard).dataSource();
    }

    /** Publishes the numbers as texts with twenty keys in one call. */
    final List<EventPosition> publishTexts(String stream, int from, int to) {
        return publisher.publishAll(
                stream,
                IntStream.range(from, to)
                        .mapToObj(i -> Event.ofText("key-" + i % 20, Integer.toString(i)))
                        .toList());
    }

    static List<String> texts(int from, int to) {
        return IntStream.range(from, to).mapToObj(Integer::toString).toList();
    }

    /** A consumer that retries after a few milliseconds. */
    static ConsumerSpec consumer(String stream, String name) {
        return ConsumerSpec.of(stream, name).withRetryDelay(SHORT_RETRY, Duration.ofMillis(5));
    }

    /** Returns the number of events that the consumer has committed. */
    final long committed(String stream, String consumer) {
        return eventSql.positions(stream, consumer).stream()
                .mapToLong(ConsumerPosition::nextOffset)
                .sum();
    }
}
