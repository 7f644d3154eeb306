package io.eventsql.kafka.connect;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.StreamSpec;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.source.SourceRecord;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The connector and its tasks against real databases, without Kafka. */
@Timeout(60)
class EventSqlSourceIT {
    private static final String DOWN = "jdbc:postgresql://127.0.0.1:1/down";
    private static ConnectFixture fixture;
    private final TestWorker worker = new TestWorker();

    @BeforeAll
    static void start() {
        fixture = new ConnectFixture();
    }

    @AfterAll
    static void stop() {
        fixture.close();
    }

    private static void create(String stream, int partitions, int events) {
        fixture.eventSql.createStream(StreamSpec.of(stream).withPartitions(partitions));
        fixture.publish(stream, 0, events);
    }

    private static List<Integer> values(List<SourceRecord> records) {
        return records.stream()
                .map(converted -> Integer.parseInt(new String((byte[]) converted.value(), UTF_8)))
                .toList();
    }

    private static Long offset(SourceRecord converted) {
        return (Long) converted.sourceOffset().get("offset");
    }

    /** Asserts that the offsets of each source partition are 0, 1, 2 and so on. */
    private static void assertGapless(List<SourceRecord> records) {
        Map<Map<String, ?>, Long> next = new HashMap<>();
        for (SourceRecord converted : records) {
            assertThat(offset(converted)).isEqualTo(next.getOrDefault(converted.sourcePartition(), 0L));
            next.put(converted.sourcePartition(), offset(converted) + 1);
        }
    }

    @Test
    void tasks_shareThePartitions_andContinueAfterRestarts() throws InterruptedException {
        create("shared", 3, 500);
        Map<String, String> properties = fixture.properties("shared", "position.headers", "true");
        EventSqlSourceConnector connector = worker.connector(properties);
        List<Map<String, String>> tasks = connector.taskConfigs(4);
        connector.stop();
        List<String> partitions = tasks.stream()
                .flatMap(task -> List.of(task.get("task.partitions").split(",")).stream())
                .toList();
        assertThat(tasks).hasSize(4);
        assertThat(partitions)
                .containsExactlyInAnyOrder(
                        "shared/0/0", "shared/0/1", "shared/0/2", "shared/1/0", "shared/1/1", "shared/1/2");

        List<SourceRecord> written = new ArrayList<>(worker.writeAll(properties, 4, 100));
        int before = written.size();
        fixture.publish("shared", 500, 600);
        written.addAll(worker.writeAll(properties, 1, 600 - before));

        assertThat(values(written))
                .containsExactlyInAnyOrderElementsOf(
                        IntStream.range(0, 600).boxed().toList());
        assertGapless(written);
        assertThat(written)
                .allSatisfy(converted -> assertThat(
                                converted.headers().lastWithName("half").value())
                        .isEqualTo("" + Integer.parseInt(new String((byte[]) converted.value(), UTF_8)) / 2));
    }

    /** What was polled and not written is polled again: the offsets alone decide. */
    @Test
    void restart_recordsNotWritten_arePolledAgain() throws InterruptedException {
        create("unwritten", 1, 200);
        Map<String, String> properties = fixture.properties(
                "unwritten", "task.partitions", "unwritten/0/0,unwritten/1/0", "batch.events.max", "10");
        EventSqlSourceTask lost = worker.task(properties);
        assertThat(TestWorker.poll(lost)).isNotEmpty();
        lost.stop();

        EventSqlSourceTask task = worker.task(properties);
        List<SourceRecord> written = worker.write(task, 200);
        task.stop();

        assertThat(values(written)).hasSize(200).doesNotHaveDuplicates();
        assertGapless(written);
    }

    @Test
    void startFrom_time_skipsWhatWasPublishedBefore() throws InterruptedException {
        create("timed", 1, 100);
        List<SourceRecord> all = worker.writeAll(fixture.properties("timed"), 1, 100);
        fixture.publish("timed", 100, 120);
        String lastTime = all.stream()
                .map(converted -> converted.sourceOffset().get("published_at").toString())
                .max(String::compareTo)
                .orElseThrow();

        List<SourceRecord> later = new TestWorker()
                .writeAll(
                        fixture.properties(
                                "timed",
                                "start.from",
                                Instant.parse(lastTime).plusNanos(1_000).toString()),
                        1,
                        20);

        assertThat(values(later))
                .containsExactlyInAnyOrderElementsOf(
                        IntStream.range(100, 120).boxed().toList());
    }

    @Test
    void rowsMissing_failOrAreSkipped() throws InterruptedException {
        create("holes", 1, 100);
        fixture.execute("DELETE FROM eventsql.events_holes WHERE event_offset = 7");

        assertThatExceptionOfType(ConnectException.class)
                .isThrownBy(() -> worker.writeAll(fixture.properties("holes"), 1, 100))
                .withMessageContaining("Missing events [7, 8)")
                .withMessageContaining("set unreadable.events.policy to skip");
        List<SourceRecord> written =
                new TestWorker().writeAll(fixture.properties("holes", "unreadable.events.policy", "skip"), 1, 98);

        assertThat(written)
                .hasSize(98)
                .allSatisfy(converted -> assertThat(offset(converted)).isNotEqualTo(7));
    }

    @Test
    void retentionFaster_failsOrContinuesAtTheEarliest() throws InterruptedException {
        create("cleared", 1, 100);
        EventSqlSourceTask task = worker.task(
                fixture.properties("cleared", "task.partitions", "cleared/0/0,cleared/1/0", "batch.events.max", "10"));
        assertThat(worker.write(task, 1)).hasSizeLessThan(100);
        task.stop();
        fixture.eventSql.clear(
                "cleared", fixture.eventSql.previewClear("cleared").confirmation());
        fixture.publish("cleared", 100, 150);

        assertThatExceptionOfType(ConnectException.class)
                .isThrownBy(() -> worker.writeAll(fixture.properties("cleared"), 1, 50))
                .withMessageContaining("is out of range")
                .withMessageContaining("set out.of.range.policy to earliest");
        List<SourceRecord> written =
                worker.writeAll(fixture.properties("cleared", "out.of.range.policy", "earliest"), 1, 50);

        assertThat(values(written))
                .containsExactlyInAnyOrderElementsOf(
                        IntStream.range(100, 150).boxed().toList());
    }

    @Test
    void erased_isSkipped_orWrittenWithoutValue() throws InterruptedException {
        create("erased", 1, 100);
        fixture.eventSql.erase("erased", "k1");

        List<SourceRecord> written = worker.writeAll(fixture.properties("erased"), 1, 90);
        assertThat(written).hasSize(90).noneMatch(converted -> "k1".equals(converted.key()));

        List<SourceRecord> all =
                new TestWorker().writeAll(fixture.properties("erased", "erased.events.policy", "tombstone"), 1, 100);
        assertThat(all)
                .hasSize(100)
                .allSatisfy(converted -> assertThat(converted.value() == null).isEqualTo("k1".equals(converted.key())));
    }

    /** The source offset says where: an operator who skips the event would otherwise skip those before it. */
    @Test
    void valueNotUtf8_failsTheTask_onceTheRecordsBeforeItAreWritten() throws InterruptedException {
        fixture.eventSql.createStream(StreamSpec.of("binary").withPartitions(1));
        fixture.eventSql
                .publisher()
                .publishAll(
                        "binary",
                        List.of(
                                Event.ofText("k", "a"),
                                Event.ofText("k", "b"),
                                Event.of("k", new byte[] {(byte) 0xFF}),
                                Event.ofText("k", "d")));
        EventSqlSourceTask task = worker.task(
                fixture.properties("binary", "task.partitions", "binary/0/0,binary/1/0", "value.type", "string"));
        try {
            assertThat(worker.write(task, 2)).extracting(SourceRecord::value).containsExactly("a", "b");
            assertThatExceptionOfType(ConnectException.class)
                    .isThrownBy(task::poll)
                    .withMessageContaining("offset 2")
                    .withMessageContaining("set value.type to bytes");
        } finally {
            task.stop();
        }
    }

    /** As after a growth that was cancelled, or on a standby that has not replayed one. */
    @Test
    void partitionAbsent_theOthersAreRead() throws InterruptedException {
        create("absent", 1, 100);
        EventSqlSourceTask task = worker.task(
                fixture.properties("absent", "task.partitions", "absent/0/0,absent/0/1,absent/1/0,absent/1/1"));
        try {
            assertThat(values(worker.write(task, 100))).hasSize(100);
            assertThat(task.poll()).isNull();
        } finally {
            task.stop();
        }
    }

    @Test
    void streamDeleted_beforeItWasRead_failsTheTask() {
        EventSqlSourceTask task = worker.task(fixture.properties("deleted", "task.partitions", "deleted/0/0"));
        try {
            assertThatExceptionOfType(ConnectException.class)
                    .isThrownBy(task::poll)
                    .withMessageContaining("There is no stream deleted on shard 0");
        } finally {
            task.stop();
        }
    }

    @Test
    void streamDeletedAndCreatedAgain_failsAsAnotherHistory() throws InterruptedException {
        create("again", 1, 50);
        worker.writeAll(fixture.properties("again"), 1, 50);
        fixture.eventSql.deleteStream(
                "again", fixture.eventSql.previewDeleteStream("again").confirmation());
        create("again", 1, 80);

        assertThatExceptionOfType(ConnectException.class)
                .isThrownBy(() -> worker.writeAll(fixture.properties("again"), 1, 1))
                .withMessageContaining("was lost")
                .withMessageContaining("alter or reset its offsets");
    }

    @Test
    void shardUnavailable_theOtherIsRead_andPollsAreRetriable() throws InterruptedException {
        create("half", 1, 100);
        EventSqlSourceTask task = worker.task(fixture.properties(
                "half",
                "task.partitions",
                "half/0/0,half/1/0",
                "connection.url",
                DOWN + ";" + fixture.urls().get(0)));
        try {
            List<SourceRecord> written = worker.write(task, 1);
            RetriableException failure = null;
            while (failure == null) {
                try {
                    List<SourceRecord> more = task.poll();
                    written.addAll(more == null ? List.of() : more);
                } catch (RetriableException e) {
                    failure = e;
                }
            }
            assertThat(failure).hasMessageContaining("has not been reached");
            Set<Map<String, ?>> partitions =
                    written.stream().map(SourceRecord::sourcePartition).collect(Collectors.toCollection(HashSet::new));
            assertThat(partitions).hasSize(1);
            assertGapless(written);
        } finally {
            task.stop();
        }
    }

    @Test
    void task_allDatabasesUnavailable_isRetriable_andStops() throws InterruptedException {
        EventSqlSourceTask task =
                worker.task(fixture.properties("any", "task.partitions", "any/0/0", "connection.url", DOWN));
        assertThatExceptionOfType(RetriableException.class).isThrownBy(task::poll);
        task.stop();
        assertThat(task.poll()).isNull();
    }

    @Test
    void connector_unknownStreamOrWrongPassword_failsAtStart_unavailableDatabasesDoNot() {
        assertThatExceptionOfType(ConnectException.class)
                .isThrownBy(() -> worker.connector(fixture.properties("nowhere")))
                .withMessageContaining("Stream nowhere does not exist");
        assertThatExceptionOfType(ConnectException.class)
                .isThrownBy(() -> worker.connector(fixture.properties(
                        "nowhere", "connection.url", fixture.urls().get(0))))
                .withMessageContaining("1 databases are given");

        EventSqlSourceConnector connector = worker.connector(fixture.properties("any", "connection.url", DOWN));
        assertThatExceptionOfType(RetriableException.class).isThrownBy(() -> connector.taskConfigs(1));
        connector.stop();
    }

    @Test
    void discovery_otherPartitions_requestsNewTasksUntilTheyAreAssigned() {
        create("grows", 1, 10);
        EventSqlSourceConnector connector = worker.connector(fixture.properties("grows", "discovery.interval.ms", "5"));
        try {
            assertThat(connector.taskConfigs(8)).hasSize(2);
            fixture.eventSql.deleteStream(
                    "grows", fixture.eventSql.previewDeleteStream("grows").confirmation());
            fixture.eventSql.createStream(StreamSpec.of("grows").withPartitions(2));
            await().atMost(Duration.ofSeconds(30)).until(() -> worker.reconfigurations.get() > 0);
            assertThat(connector.taskConfigs(8)).hasSize(4);
            assertThat(worker.errors).isEmpty();
        } finally {
            connector.stop();
        }
    }

    /** A standalone worker asks once: nothing would be read, without a word, also when the database responds again. */
    @Test
    void discovery_databaseUnavailableWhenTasksWereAskedFor_requestsThemLater() throws SQLException {
        create("late", 1, 1);
        Map<String, String> properties =
                fixture.properties("late", "discovery.interval.ms", "5", "connection.timeout.ms", "500");
        try (Connection locking = DriverManager.getConnection(
                        fixture.urls().get(0),
                        properties.get("connection.user"),
                        properties.get("connection.password"));
                Statement statement = locking.createStatement()) {
            locking.setAutoCommit(false);
            statement.execute("LOCK TABLE eventsql.shard IN ACCESS EXCLUSIVE MODE");
            EventSqlSourceConnector connector = worker.connector(properties);
            try {
                assertThatExceptionOfType(RetriableException.class).isThrownBy(() -> connector.taskConfigs(8));
                locking.rollback();
                await().atMost(Duration.ofSeconds(30)).until(() -> worker.reconfigurations.get() > 0);
            } finally {
                connector.stop();
            }
        }
    }

    @Test
    void discovery_errorOnce_isRepeated() {
        create("erring", 1, 1);
        AtomicInteger calls = new AtomicInteger();
        Runnable failsFirst = () -> {
            if (calls.incrementAndGet() == 1) {
                throw new NoClassDefFoundError("thrown by the test");
            }
        };
        ConnectorConfig config =
                ConnectorConfig.ofConnector(fixture.properties("erring", "discovery.interval.ms", "5"));
        try (PartitionDiscovery discovery = new PartitionDiscovery(config, failsFirst, failure -> {})) {
            discovery.assign();
            fixture.eventSql.deleteStream(
                    "erring", fixture.eventSql.previewDeleteStream("erring").confirmation());
            fixture.eventSql.createStream(StreamSpec.of("erring").withPartitions(2));
            await().atMost(Duration.ofSeconds(30)).until(() -> calls.get() > 1);
        }
    }

    /** The tasks read the partitions that they were given, and miss nothing. */
    @Test
    void discovery_keysMovedToAShardThatWasNotGiven_failsTheConnector() {
        try (ConnectFixture moving = new ConnectFixture()) {
            moving.eventSql.createStream(StreamSpec.of("moving").withPartitions(1));
            EventSqlSourceConnector connector =
                    worker.connector(moving.properties("moving", "discovery.interval.ms", "5"));
            try {
                assertThat(connector.taskConfigs(8)).hasSize(2);
                moving.moveKeysToAnotherShard();
                await().atMost(Duration.ofSeconds(30)).until(() -> !worker.errors.isEmpty());
                assertThat(worker.errors.get(0))
                        .isInstanceOf(ConnectException.class)
                        .hasMessageContaining("but 2 databases are given")
                        .hasMessageContaining("Correct connection.url");
            } finally {
                connector.stop();
            }
        }
    }
}
