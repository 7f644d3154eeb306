package io.eventsql.group;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.PartitionState;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.TestCluster;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.TestInstance;

/** One shard, an instance over it, and a stream for each test. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class GroupFixture {
    static final int PARTITIONS = 4;
    static final Duration SHORT = Duration.ofMillis(1);
    private static final AtomicInteger STREAMS = new AtomicInteger();

    TestCluster cluster;
    EventSql eventSql;

    @BeforeAll
    void openCluster() {
        cluster = TestCluster.ofShards(1);
        eventSql = cluster.open();
    }

    @AfterAll
    void closeCluster() {
        cluster.close();
    }

    String newStream() {
        return newStream(PARTITIONS);
    }

    String newStream(int partitions) {
        String name = "g" + STREAMS.incrementAndGet();
        eventSql.createStream(StreamSpec.of(name).withPartitions(partitions).withSegmentSize(1_000));
        return name;
    }

    /** A consumer that retries at once. */
    static ConsumerSpec consumer(String stream) {
        return ConsumerSpec.of(stream, "c").withRetryDelay(SHORT, SHORT);
    }

    /** Publishes events with the texts {@code from} to {@code to - 1}, key {@code text % keys}. */
    void publish(String stream, int from, int to, int keys) {
        eventSql.publisher()
                .publishAll(
                        stream,
                        IntStream.range(from, to)
                                .mapToObj(i -> Event.ofText("key-" + i % keys, Integer.toString(i)))
                                .toList());
    }

    /** Publishes one event after the other, of these keys; the texts are the key and its count. */
    void publishKeys(String stream, String... keys) {
        Map<String, Integer> counts = new HashMap<>();
        eventSql.publisher()
                .publishAll(
                        stream,
                        List.of(keys).stream()
                                .map(key -> Event.ofText(key, key + counts.merge(key, 1, Integer::sum)))
                                .toList());
    }

    static List<String> texts(int from, int to) {
        return IntStream.range(from, to).mapToObj(Integer::toString).toList();
    }

    List<PartitionState> state(String stream) {
        return eventSql.consumer(stream, "c").state();
    }

    void awaitLag(String stream, long lag) {
        await().atMost(Duration.ofSeconds(30))
                .untilAsserted(() -> assertThat(state(stream).stream()
                                .mapToLong(PartitionState::lag)
                                .sum())
                        .isEqualTo(lag));
    }

    void awaitStatus(String stream, PartitionState.Status status) {
        await().atMost(Duration.ofSeconds(30))
                .until(() -> state(stream).stream().anyMatch(p -> p.status() == status));
    }

    /** The numbers of each key must rise. */
    static void assertOrderOfKeys(Collection<StoredEvent> events) {
        Map<String, List<Integer>> numbers = new HashMap<>();
        events.forEach(event ->
                numbers.computeIfAbsent(event.key(), k -> new ArrayList<>()).add(Integer.parseInt(event.text())));
        assertThat(numbers)
                .allSatisfy((key, ofKey) ->
                        assertThat(ofKey).as("events of %s", key).isSorted());
    }
}
