package io.eventsql.publish;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.PublishListener;
import io.eventsql.Settings;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;

/**
 * Base class of tests of what callers get: one shard, a stream per test, and instances whose deadline is far beyond what a test
 * waits for. So an outcome that arrives did not wait for the deadline.
 */
abstract class PublishFixture {
    static final Duration FAR = Duration.ofMinutes(30);
    static final long SECONDS_MAX = 60;

    final Recorder recorder = new Recorder();
    private final List<EventSql> opened = new ArrayList<>();
    private static TestCluster cluster;

    /** Records the failed attempts to append. */
    static final class Recorder implements PublishListener {
        final List<Throwable> failedAppends = new CopyOnWriteArrayList<>();

        @Override
        public void appendFailed(int shard, Throwable error) {
            failedAppends.add(error);
        }
    }

    @BeforeAll
    static void openCluster() {
        cluster = TestCluster.ofShards(1);
    }

    @AfterAll
    static void closeCluster() {
        cluster.close();
    }

    @AfterEach
    void closeInstances() {
        opened.forEach(eventSql -> eventSql.close(Duration.ofSeconds(2)));
    }

    static DataSource dataSource() {
        return cluster.dataSources().getFirst();
    }

    static Settings.Builder settings() {
        return Settings.builder().publishTimeout(FAR).maxBatchEvents(100);
    }

    final EventSql open() {
        return open(dataSource(), settings());
    }

    final EventSql open(DataSource dataSource, Settings.Builder settings) {
        EventSql eventSql = EventSql.builder(dataSource)
                .settings(settings.build())
                .publishListener(recorder)
                .build();
        opened.add(eventSql);
        return eventSql;
    }

    static String newStream(EventSql eventSql, int partitions) {
        String stream = TestStreams.newName();
        eventSql.createStream(TestStreams.of(stream).withPartitions(partitions).withSegmentSize(1_000));
        return stream;
    }

    /** Creates a trigger on the stream's table that executes the statements for each event whose value is 'bad'. */
    static void createTrigger(String stream, String... statements) throws SQLException {
        Sql.execute(
                dataSource(),
                "CREATE FUNCTION " + stream + "_check() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                        + " IF " + TestStreams.anyNew("e.value = 'bad'") + " THEN " + String.join(";", statements)
                        + "; END IF;"
                        + " RETURN NEW; END $$",
                "CREATE TRIGGER check_event BEFORE INSERT ON " + TestStreams.table(stream)
                        + " FOR EACH ROW EXECUTE FUNCTION " + stream + "_check()");
    }

    /** Work during which no append can lock its partitions, so that calls gather. */
    interface Work {
        void run() throws Exception;
    }

    static void whilePartitionsAreLocked(Work work) throws Exception {
        try (Connection holder = dataSource().getConnection();
                Statement statement = holder.createStatement()) {
            holder.setAutoCommit(false);
            try {
                statement.execute("SELECT FROM eventsql.stream_partition FOR UPDATE");
                work.run();
            } finally {
                holder.rollback();
                holder.setAutoCommit(true);
            }
        }
    }

    static List<String> storedValues(String stream) throws SQLException {
        return Sql.query(
                dataSource(),
                "SELECT convert_from(value, 'UTF8') FROM eventsql.events_" + stream
                        + " ORDER BY partition, event_offset");
    }

    static <T> T get(CompletableFuture<T> future) throws Exception {
        return future.get(SECONDS_MAX, TimeUnit.SECONDS);
    }

    /** Waits for the failure of a call. */
    static EventSqlException failureOf(CompletableFuture<?> future) throws InterruptedException, TimeoutException {
        try {
            Object result = future.get(SECONDS_MAX, TimeUnit.SECONDS);
            throw new AssertionError("the call succeeded: " + result);
        } catch (ExecutionException e) {
            assertThat(e.getCause()).isInstanceOf(EventSqlException.class);
            return (EventSqlException) e.getCause();
        }
    }

    static CompletableFuture<EventPosition> publish(EventSql eventSql, String stream, String key, String value) {
        return eventSql.publisher().publishAsync(stream, Event.ofText(key, value));
    }
}
