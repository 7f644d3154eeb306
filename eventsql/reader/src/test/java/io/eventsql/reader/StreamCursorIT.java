package io.eventsql.reader;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.eventsql.Event;
import io.eventsql.StreamSpec;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BiFunction;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.postgresql.ds.PGSimpleDataSource;

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

    /** A database until it is cut off: then each connection takes a while to fail. */
    private static final class Unreachable extends PGSimpleDataSource {
        private static final long serialVersionUID = 1L;

        private static final Duration TIMEOUT = Duration.ofMillis(200);

        private final transient DataSource database;
        private final transient List<Connection> lent = new ArrayList<>();
        private boolean isCutOff;
        private int failed;

        Unreachable(DataSource database) {
            this.database = database;
        }

        void cutOff() throws SQLException {
            isCutOff = true;
            for (Connection connection : lent) {
                connection.abort(Runnable::run);
            }
        }

        @Override
        public Connection getConnection() throws SQLException {
            if (isCutOff) {
                failed++;
                LockSupport.parkNanos(TIMEOUT.toNanos()); // as the network would
                throw new SQLException("no connection", "08001");
            }
            Connection connection = database.getConnection();
            lent.add(connection);
            return connection;
        }
    }

    @Test
    void poll_oneShardDoesNotRespond_waitsForItATenthOfTheTime() throws Exception {
        try (TestDatabases two = new TestDatabases(2)) {
            two.eventSql.createStream(StreamSpec.of("halved").withPartitions(1));
            Unreachable unreachable = new Unreachable(two.shards.get(1));
            try (EventReader reader = EventReader.open(List.of(two.shards.get(0), unreachable))) {
                StreamCursor cursor = reader.cursor(CursorSpec.of("halved"));
                unreachable.cutOff();
                long start = System.nanoTime();
                for (int polls = 0; polls < 30; polls++) {
                    publishToBoth(two, "" + polls);
                    assertThat(cursor.poll(Duration.ofMinutes(1)))
                            .isNotEmpty()
                            .allMatch(event -> event.partition().shard() == 0);
                }
                long tenths = (System.nanoTime() - start) / (10 * Unreachable.TIMEOUT.toNanos());
                assertThat(unreachable.failed).isBetween(1, 1 + Math.toIntExact(tenths));

                unreachable.isCutOff = false;
                assertThat(cursor.poll(Duration.ofMinutes(1)))
                        .isNotEmpty()
                        .allMatch(event -> event.partition().shard() == 1);
            }
        }
    }

    private static void publishToBoth(TestDatabases two, String value) {
        two.eventSql
                .publisher()
                .publishAll(
                        "halved",
                        IntStream.range(0, 40)
                                .mapToObj(i -> Event.ofText("k" + i, value))
                                .toList());
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
