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
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: a consumer that starts at {@link StartPosition#LATEST} gets everything that was published after it was registered,
 * also on a shard that it joins later. Method: one of three shards is unavailable to the consumer's process, while another
 * process publishes to all of them.
 */
@Timeout(120)
class LateShardIT {
    private static final String STREAM = "orders";
    private static final int KEYS = 60;
    private static final ConsumerSpec CONSUMER = ConsumerSpec.of(STREAM, "c").withStartPosition(StartPosition.LATEST);

    private final TestCluster cluster = TestCluster.ofShards(3);
    private final EventSql publisher = cluster.open();
    private final List<AutoCloseable> opened = new ArrayList<>();
    private SwitchableDataSource late;

    @BeforeEach
    void publishBefore() {
        publisher.createStream(StreamSpec.of(STREAM).withPartitions(2));
        publish("before");
    }

    @AfterEach
    void closeAll() throws Exception {
        for (AutoCloseable one : opened.reversed()) {
            one.close();
        }
        cluster.close();
    }

    private void publish(String when) {
        List<Event> events = IntStream.range(0, KEYS)
                .mapToObj(i -> Event.ofText("key" + i, when + i))
                .toList();
        assertThat(publisher.publisher().publishAll(STREAM, events))
                .extracting(position -> position.shard())
                .contains(0, 1, 2);
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
        EventSql eventSql = EventSql.builder(dataSources).build();
        opened.add(eventSql);
        return eventSql;
    }

    private static void awaitAll(Handled handled, List<String> expected) {
        await().untilAsserted(() -> assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(expected));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 2})
    void latest_shardJoinedLate_getsWhatWasPublishedSinceTheSubscription(int shard) {
        Handled handled = new Handled();
        try (Subscription ignored = openWithout(shard).subscribe(CONSUMER, handled::add)) {
            publish("between");
            late.setAvailable(true);
            awaitAll(handled, texts("between"));
            publish("after");
            awaitAll(handled, texts("between", "after"));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 2})
    void latest_processRestartsBeforeItJoinedTheShard_skipsNothing(int shard) throws SQLException {
        Handled handled = new Handled();
        EventSql first = openWithout(shard);
        try (Subscription ignored = first.subscribe(CONSUMER, handled::add)) {
            publish("first");
        }
        first.close();
        publish("second");
        assertThat(Sql.query(cluster.dataSources().get(shard), "SELECT name FROM eventsql.consumer"))
                .isEmpty();

        try (Subscription ignored = cluster.open().subscribe(CONSUMER, handled::add)) {
            awaitAll(handled, texts("first", "second"));
        }
    }

    @Test
    void latest_newConsumerOnAllShards_getsNothingOlder() {
        Handled handled = new Handled();
        try (Subscription ignored = cluster.open().subscribe(CONSUMER, handled::add)) {
            publish("after");
            awaitAll(handled, texts("after"));
        }
    }
}
