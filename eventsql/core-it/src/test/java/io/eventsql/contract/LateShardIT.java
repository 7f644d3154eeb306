package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.StartPosition;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.SwitchableDataSource;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: a consumer that starts at {@link StartPosition#LATEST} gets everything that was published after it was registered,
 * also on a shard that it joins later. Method: one of two shards is unavailable to the consumer's process, while another
 * process publishes to both.
 */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(120)
class LateShardIT {
    private static final int KEYS = 30;

    private TestCluster cluster;
    private EventSql publisher;
    private SwitchableDataSource late;
    private String stream;
    private ConsumerSpec consumer;

    @BeforeAll
    void openCluster() {
        cluster = TestCluster.ofShards(2);
        publisher = EventSql.builder(cluster.dataSources()).build();
    }

    @BeforeEach
    void publishBefore() {
        stream = TestStreams.newName();
        consumer = ConsumerSpec.of(stream, "c").withStartPosition(StartPosition.LATEST);
        publisher.createStream(StreamSpec.of(stream).withPartitions(2));
        publish("before");
    }

    @AfterEach
    void closeInstances() {
        cluster.closeInstances();
    }

    @AfterAll
    void closeCluster() {
        publisher.close();
        cluster.close();
    }

    private void publish(String when) {
        List<Event> events = IntStream.range(0, KEYS)
                .mapToObj(i -> Event.ofText("key" + i, when + i))
                .toList();
        assertThat(publisher.publisher().publishAll(stream, events))
                .extracting(position -> position.shard())
                .contains(0, 1);
    }

    private static List<String> texts(String... moments) {
        return Stream.of(moments)
                .flatMap(when -> IntStream.range(0, KEYS).mapToObj(i -> when + i))
                .toList();
    }

    /** Opens a process to which one shard is unavailable. */
    private EventSql openWithout(int shard) {
        late = new SwitchableDataSource(cluster.dataSources().get(shard));
        late.setAvailable(false);
        List<DataSource> dataSources = new ArrayList<>(cluster.dataSources());
        dataSources.set(shard, late);
        return cluster.open(dataSources);
    }

    private static void awaitAll(Handled handled, List<String> expected) {
        await().untilAsserted(() -> assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(expected));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void latest_shardJoinedLate_getsWhatWasPublishedSinceTheSubscription(int shard) {
        Handled handled = new Handled();
        try (Subscription ignored = openWithout(shard).subscribe(consumer, handled::add)) {
            publish("between");
            late.setAvailable(true);
            awaitAll(handled, texts("between"));
            publish("after");
            awaitAll(handled, texts("between", "after"));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void latest_processRestartsBeforeItJoinedTheShard_skipsNothing(int shard) throws SQLException {
        Handled handled = new Handled();
        EventSql first = openWithout(shard);
        try (Subscription ignored = first.subscribe(consumer, handled::add)) {
            publish("first");
        }
        first.close();
        publish("second");
        assertThat(Sql.query(
                        cluster.dataSources().get(shard),
                        "SELECT c.name FROM eventsql.consumer c JOIN eventsql.stream s USING (stream_id) WHERE s.name = ?",
                        stream))
                .isEmpty();

        try (Subscription ignored = cluster.open().subscribe(consumer, handled::add)) {
            awaitAll(handled, texts("first", "second"));
        }
    }

    @Test
    void latest_newConsumerOnAllShards_getsNothingOlder() {
        Handled handled = new Handled();
        try (Subscription ignored = cluster.open().subscribe(consumer, handled::add)) {
            publish("after");
            awaitAll(handled, texts("after"));
        }
    }
}
