package io.eventsql.internal.retain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.OutOfRangePolicy;
import io.eventsql.Retention;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.fixture.load.PublishLoad;
import io.eventsql.fixture.process.ChildProcess;
import java.io.IOException;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Goal: retention that is killed at any moment, also between two of its steps, removes nothing within the policy, and what
 * one process has begun another one completes.
 *
 * <p>Method: two processes take steps with hardly a pause and are killed at random moments, while callers publish and a consumer
 * reads. One stream has segments of 100 events; the other one gets its limit when its first segments are in use, which end
 * early. The start of each log is compared with the limit all the time. At the end the catalog is compared with the tables,
 * and the log with what was acknowledged.
 *
 * <p>{@code -Deventsql.test.retentionKills=N} kills N times instead of 4.
 */
@Timeout(180)
class RetentionCrashIT {
    private static final int KILLS = Integer.getInteger("eventsql.test.retentionKills", 4);
    private static final int PROCESSES = 2;
    private static final int KILL_INTERVAL_MS_MAX = 800;
    /** Segments of 100 events end many times between two kills nevertheless. */
    private static final int PUBLISH_PAUSE_MAX_MS = 25;

    private static final int PARTITIONS = 3;
    private static final long EVENTS_MAX = 500;
    /** Generous, so that only a hang fails. */
    private static final Duration DEADLINE = Duration.ofSeconds(120);

    private static final String SMALL = "small_segments";
    private static final String LARGE = "large_segments";
    private static final List<String> STREAMS = List.of(SMALL, LARGE);

    @TempDir
    private Path folder;

    private final Random random = Seeds.random("RetentionCrashIT");
    private final List<ChildProcess> processes = new ArrayList<>();
    private String url;
    private HikariDataSource database;
    private EventSql eventSql;

    /** The acknowledged events of one stream. */
    private static final class Acknowledged extends Ledger {
        final Map<EventPosition, String> events = new ConcurrentHashMap<>();

        @Override
        public void stored(Event event, EventPosition position) {
            super.stored(event, position);
            events.put(position, event.text());
        }
    }

    @BeforeEach
    void open() {
        PGSimpleDataSource created = (PGSimpleDataSource) TestCluster.newDatabaseWithTables();
        url = created.getUrl();
        database = TestCluster.pool(created);
        eventSql = EventSql.builder(database).build();
    }

    @AfterEach
    void close() {
        processes.forEach(ChildProcess::close);
        eventSql.close();
        database.close();
    }

    private ChildProcess startProcess() throws IOException {
        ChildProcess process = new ChildProcess(
                folder,
                RetentionProcess.class,
                List.of(
                        url,
                        TestCluster.server().username(),
                        TestCluster.server().password()));
        processes.add(process);
        return process;
    }

    @Test
    void retention_processesKilledBetweenSteps_removesOnlyWhatThePolicySaysAndCompletes() throws Exception {
        Retention retention = Retention.FOREVER.withMaxEvents(EVENTS_MAX);
        eventSql.createStream(StreamSpec.of(SMALL)
                .withPartitions(PARTITIONS)
                .withSegmentSize(100)
                .withRetention(retention));
        StreamSpec large = StreamSpec.of(LARGE).withPartitions(PARTITIONS).withSegmentSize(100_000);
        eventSql.createStream(large);
        Map<String, Acknowledged> acknowledged = new HashMap<>();
        Map<String, Handled> handled = new HashMap<>();
        List<PublishLoad> loads = new ArrayList<>();
        List<Subscription> subscriptions = new ArrayList<>();
        for (String stream : STREAMS) {
            acknowledged.put(stream, new Acknowledged());
            handled.put(stream, new Handled());
            subscriptions.add(eventSql.subscribe(
                    ConsumerSpec.of(stream, "c").withOutOfRangePolicy(OutOfRangePolicy.EARLIEST),
                    handled.get(stream)::add));
            PublishLoad load = new PublishLoad(eventSql.publisher(), stream, acknowledged.get(stream));
            load.startAll(1, stream, random, PUBLISH_PAUSE_MAX_MS);
            loads.add(load);
        }
        await().atMost(DEADLINE).until(() -> acknowledged.get(LARGE).events.size() > PARTITIONS * EVENTS_MAX);
        eventSql.alterStream(large.withRetention(retention));

        killProcesses();
        await().atMost(DEADLINE)
                .until(() ->
                        Sql.queryLong(database, "SELECT count(*) FROM eventsql.partition_head WHERE log_start = 0") == 0
                                && eventSql.retentionStatus(0).expiredSegments() > 2 * KILLS);
        for (PublishLoad load : loads) {
            load.stop();
        }
        for (String stream : STREAMS) {
            await().atMost(DEADLINE)
                    .until(() -> eventSql.positions(stream, "c").stream().allMatch(position -> position.lag() == 0));
        }
        subscriptions.forEach(Subscription::close);
        processes.forEach(ChildProcess::close);
        completeRetention();

        for (String stream : STREAMS) {
            assertLogHoldsAllAcknowledged(stream, acknowledged.get(stream).events);
            assertOrderKept(handled.get(stream), acknowledged.get(stream).events);
            assertCatalogComplete(stream);
        }
        System.out.println("RetentionCrashIT: " + eventSql.retentionStatus(0) + " after " + KILLS + " kills");
        assertThat(eventSql.retentionStatus(0).expiredSegments()).isGreaterThan(2 * KILLS);
    }

    /** Kills processes at random moments; the successor of each starts before, so that steps are taken all the time. */
    private void killProcesses() throws Exception {
        List<ChildProcess> running = new ArrayList<>();
        for (int i = 0; i < PROCESSES; i++) {
            running.add(startProcess());
        }
        for (int kill = 0; kill < KILLS; kill++) {
            ChildProcess successor = startProcess();
            running.getFirst().awaitLine("READY");
            long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(random.nextInt(KILL_INTERVAL_MS_MAX));
            do {
                assertPolicyHolds();
            } while (System.nanoTime() - end < 0);
            running.removeFirst().kill();
            running.add(successor);
        }
    }

    /** What expires lies {@value #EVENTS_MAX} events or more below the head, which only rises. */
    private void assertPolicyHolds() throws SQLException {
        assertThat(Sql.query(
                        database,
                        "SELECT h::text FROM eventsql.partition_head h WHERE log_start > greatest(0, next_offset - "
                                + EVENTS_MAX + ")"))
                .as("logs that start above what the limit allows")
                .isEmpty();
    }

    private void completeRetention() throws SQLException {
        await().atMost(DEADLINE)
                .until(
                        () -> Sql.query(database, "SELECT eventsql.expire_v1()").getFirst(),
                        "finished"::equals); // may be the rest of a pass that was begun before
        await().atMost(DEADLINE)
                .until(() -> Sql.query(database, "SELECT eventsql.expire_v1()").getFirst(), "finished"::equals);
        await().atMost(DEADLINE)
                .until(
                        () -> Sql.query(database, "SELECT eventsql.drop_empty_segments_v1(false)")
                                .getFirst(),
                        "0"::equals);
        assertPolicyHolds();
    }

    private long logStart(String stream, int partition) throws SQLException {
        return Sql.queryLong(
                database,
                "SELECT log_start FROM eventsql.partition_head WHERE stream = '" + stream + "' AND partition = "
                        + partition);
    }

    private void assertLogHoldsAllAcknowledged(String stream, Map<EventPosition, String> acknowledged)
            throws SQLException {
        List<Ledger.Stored> stored = Ledger.read(stream, List.of(database));
        Map<EventPosition, String> values = stored.stream()
                .collect(Collectors.toMap(
                        event -> new EventPosition(stream, 0, event.partition(), event.offset()),
                        Ledger.Stored::value));
        for (int partition = 0; partition < PARTITIONS; partition++) {
            int of = partition;
            long start = logStart(stream, partition);
            long head = Sql.queryLong(
                    database,
                    "SELECT next_offset FROM eventsql.partition_head WHERE stream = '" + stream + "' AND partition = "
                            + partition);
            assertThat(start).as("start of the log of partition %s", partition).isPositive();
            assertThat(stored.stream().filter(event -> event.partition() == of).map(Ledger.Stored::offset))
                    .as("offsets of partition %s of %s", partition, stream)
                    .isEqualTo(LongStream.range(start, head).boxed().toList());
            assertThat(acknowledged.entrySet().stream()
                            .filter(event -> event.getKey().partition() == of
                                    && event.getKey().offset() >= start))
                    .allSatisfy(event -> assertThat(values).contains(event));
        }
    }

    private static void assertOrderKept(Handled handled, Map<EventPosition, String> acknowledged) {
        Map<Integer, Long> last = new HashMap<>();
        for (StoredEvent event : handled.events()) {
            assertThat(last.getOrDefault(event.partition(), -1L))
                    .as("offset before %s", event.position())
                    .isLessThan(event.offset());
            last.put(event.partition(), event.offset());
            assertThat(event.text()).isEqualTo(acknowledged.get(event.position()));
        }
        assertThat(last).hasSize(PARTITIONS);
    }

    /** Each table has a row and each row a table, the segments follow each other, and none is left below the log's start. */
    private void assertCatalogComplete(String stream) throws SQLException {
        Set<String> tables = Set.copyOf(Sql.query(
                database,
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'events\\_" + stream + "\\_\\_p%'"));
        assertThat(Set.copyOf(Sql.query(
                        database,
                        "SELECT g.table_name FROM eventsql.segment g JOIN eventsql.stream s USING (stream_id)"
                                + " WHERE s.name = ?",
                        stream)))
                .as("the catalog names the tables")
                .isEqualTo(tables);
        assertThat(
                        Sql.query(
                                database,
                                "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE c.relkind = 'r'"))
                .as("attached tables")
                .containsAll(tables);
        assertThat(Sql.query(
                        database,
                        "SELECT first_offset FROM ("
                                + " SELECT first_offset, lag(end_offset) OVER (PARTITION BY stream_id, partition"
                                + " ORDER BY first_offset) AS end_before FROM eventsql.segment) g"
                                + " WHERE first_offset <> end_before"))
                .as("segments that do not begin where the one before ends")
                .isEmpty();
        assertThat(Sql.query(
                        database,
                        "SELECT g.table_name FROM eventsql.segment g JOIN eventsql.stream_partition p"
                                + " USING (stream_id, partition)"
                                + " WHERE g.end_offset <= p.log_start OR g.state IN ('expired', 'empty')"))
                .as("segments whose space is not returned")
                .isEmpty();
    }
}
