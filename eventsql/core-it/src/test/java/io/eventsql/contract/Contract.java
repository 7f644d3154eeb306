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
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;

/**
 * Base class of the contract's classes: the databases and the instance that they share, and shorthands to use it. Event
 * counts are small. The random seed is printed on failure and set by {@code -Deventsql.test.seed}.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@Timeout(120)
abstract class Contract {
    static final int PARTITIONS = 2;
    private static final Duration SHORT_RETRY = Duration.ofMillis(1);

    final long seed = Long.getLong("eventsql.test.seed", System.nanoTime());
    final int shards;
    final Storage storage;
    final TestCluster cluster;
    final EventSql eventSql;
    final EventPublisher publisher;

    Contract(ContractCluster databases) {
        cluster = databases.databases();
        shards = cluster.shards();
        storage = databases.storage();
        eventSql = databases.eventSql();
        publisher = eventSql.publisher();
    }

    /** Closes the instances that a test has opened besides the shared one. */
    @AfterEach
    void closeInstances() {
        cluster.closeInstances();
    }

    /** Creates a stream for one test. */
    final String newStream() {
        return newStream(PARTITIONS);
    }

    final String newStream(int partitions) {
        return newStream(StreamSpec.of(newName()).withPartitions(partitions));
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
        return TestStreams.newName();
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

    /** Asserts that the numbers of each key increase. */
    static void assertOrderOfKeys(Handled handled) {
        Map<String, Integer> last = new HashMap<>();
        for (StoredEvent event : handled.events()) {
            Integer before = last.put(event.key(), Integer.parseInt(event.text()));
            assertThat(before == null || before < Integer.parseInt(event.text()))
                    .as("order of %s", event.key())
                    .isTrue();
        }
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
