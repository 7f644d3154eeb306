package io.eventsql.reader;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.eventsql.Event;
import io.eventsql.StreamSpec;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiFunction;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The positions of a cursor are those after the events that it has returned. */
@Timeout(120)
class StreamCursorIT {
    @Test
    void poll_readerIsClosedAfterOneOfTwoShardsWasRead_leavesThePositions() {
        AtomicReference<EventReader> closing = new AtomicReference<>();
        try (TestDatabases two = new TestDatabases(2)) {
            two.eventSql.createStream(StreamSpec.of("closing").withPartitions(1));
            two.eventSql
                    .publisher()
                    .publishAll(
                            "closing",
                            IntStream.range(0, 40)
                                    .mapToObj(i -> Event.ofText("k" + i, "v"))
                                    .toList());
            List<DataSource> dataSources = List.of(closedByCommit(two.shards.get(0), closing), two.shards.get(1));
            try (EventReader reader = EventReader.open(dataSources)) {
                assertThat(reader.ranges("closing")).allMatch(range -> range.head() > 0);
                StreamCursor cursor = reader.cursor(CursorSpec.of("closing"));
                Map<StreamPartition, ReadPosition> before = cursor.positions();
                closing.set(reader);
                assertThatIllegalStateException()
                        .isThrownBy(() -> cursor.poll(Duration.ZERO))
                        .withMessageContaining("The reader is closed");
                assertThat(closing.get()).isNull();
                assertThat(cursor.positions()).isEqualTo(before);
            }
        }
    }

    /** Returns a data source whose connections close a reader, once there is one, after a commit. */
    private static DataSource closedByCommit(DataSource target, AtomicReference<EventReader> closing) {
        return proxy(
                DataSource.class,
                target,
                (method, connection) -> proxy(Connection.class, (Connection) connection, (called, result) -> {
                    EventReader reader = called.equals("commit") ? closing.getAndSet(null) : null;
                    if (reader != null) {
                        reader.close();
                    }
                    return result;
                }));
    }

    /** @param afterCall gets the name and the result of each method, and returns the result that the caller gets */
    private static <T> T proxy(Class<T> type, T target, BiFunction<String, Object, Object> afterCall) {
        return type.cast(Proxy.newProxyInstance(
                StreamCursorIT.class.getClassLoader(), new Class<?>[] {type}, (proxy, method, arguments) -> {
                    try {
                        return afterCall.apply(method.getName(), method.invoke(target, arguments));
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                }));
    }
}
