package io.eventsql.move;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.EventSqlBuilder;
import io.eventsql.Settings;
import io.eventsql.StartPosition;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import io.eventsql.move.DyingDataSource.DiedException;
import io.eventsql.move.DyingDataSource.Steps;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import javax.sql.DataSource;

/** Databases of a cluster whose shards join and leave, and the instances opened over them. */
final class MoveCluster implements AutoCloseable {
    static final String STREAM = "moving";
    static final int KEYS = 60;
    /** Over three databases: deciding, joining on two other shards, preparing the only stream, and freezing the receiver. */
    static final int STEPS_BEFORE_CLOSING = 5;

    private final TestCluster cluster;
    private final List<EventSql> opened = new ArrayList<>();

    MoveCluster(int databases) {
        cluster = TestCluster.ofShards(databases);
    }

    /** Creates the cluster over the first databases, with the stream; the others join as spare shards. */
    void create(int shards) {
        createWith(shards, stream(STREAM).withSegmentSize(1_000));
    }

    /** Creates the cluster over the first databases, with these streams; the others join as spare shards. */
    void createWith(int shards, StreamSpec... streams) {
        try (EventSql eventSql = builder(dataSources().subList(0, shards)).build()) {
            for (StreamSpec stream : streams) {
                eventSql.createStream(stream);
            }
        }
        if (shards < dataSources().size()) {
            builder(dataSources()).addShards().build().close();
        }
    }

    List<DataSource> dataSources() {
        return cluster.dataSources();
    }

    static EventSqlBuilder builder(List<DataSource> databases) {
        return EventSql.builder(databases)
                .settings(Settings.builder()
                        .publishTimeout(Duration.ofSeconds(20))
                        .lease(Duration.ofSeconds(10))
                        .heartbeat(Duration.ofMillis(200))
                        .build());
    }

    /** Opens an instance over the first databases, which this cluster closes. */
    EventSql open(int databases) {
        return open(dataSources().subList(0, databases));
    }

    EventSql open(List<DataSource> databases) {
        EventSql eventSql = builder(databases).build();
        opened.add(eventSql);
        return eventSql;
    }

    /** Moves keys in a process that dies after a number of steps, which are returned. */
    static List<String> dieAfter(List<DataSource> databases, int number, List<Integer> target) {
        return dieAfter(databases, number, process -> process.moveShards(target));
    }

    /** Moves a consumer to the beginning in a process that dies when the first shards hold it back, and nothing has moved. */
    void dieInSeek(int shards, String stream, String consumer) {
        Consumer<EventSql> seek = process -> process.consumer(stream, consumer).seek(StartPosition.EARLIEST);
        dieAfter(dataSources(), shards, seek);
    }

    private static List<String> dieAfter(List<DataSource> databases, int number, Consumer<EventSql> call) {
        Steps steps = new Steps(number);
        List<DataSource> dying = databases.stream()
                .map(database -> (DataSource) new DyingDataSource(database, steps))
                .toList();
        try (EventSql eventSql = builder(dying).build()) {
            assertThatThrownBy(() -> call.accept(eventSql)).isInstanceOf(DiedException.class);
        }
        assertThat(steps.taken()).hasSize(number);
        return steps.taken();
    }

    static void delete(EventSql eventSql, String stream) {
        eventSql.deleteStream(stream, eventSql.previewDeleteStream(stream).confirmation());
    }

    static void publish(EventSql eventSql, String stream, int from, int to) {
        eventSql.publisher()
                .publishAll(
                        stream,
                        IntStream.range(from, to)
                                .mapToObj(i -> Event.ofText("key-" + i % KEYS, Integer.toString(i)))
                                .toList());
    }

    static StreamSpec stream(String name) {
        return TestStreams.of(name).withPartitions(2);
    }

    /** Asserts that events with these numbers were handled, once each, those of a key in order. */
    static void assertHandledInOrder(Handled handled, int from, int to) {
        // As sets, because AssertJ's own comparisons of collections compare each with each.
        assertThat(new TreeSet<>(handled.texts()))
                .isEqualTo(IntStream.range(from, to)
                        .mapToObj(Integer::toString)
                        .collect(Collectors.toCollection(TreeSet::new)));
        assertThat(handled.texts()).hasSize(to - from);
        Map<String, Integer> last = new HashMap<>();
        for (StoredEvent event : handled.events()) {
            int number = Integer.parseInt(event.text());
            Integer before = last.put(event.key(), number);
            assertThat(before == null || before < number)
                    .as("%s of %s after %s", number, event.key(), before)
                    .isTrue();
        }
    }

    @Override
    public void close() {
        opened.forEach(EventSql::close);
        cluster.close();
    }
}
