package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.PublishListener;
import io.eventsql.Settings;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.eventsdb.EmbeddedStandby;
import io.eventsql.eventsdb.StandbyMode;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.LostHistory;
import io.eventsql.fixture.LostHistory.Range;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.RedirectedDataSource;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestStreams;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: an asynchronous failover that loses the end of the log, and a restored copy of the data folder, are noticed by
 * running publishers and members: what was lost is reported once, and everything that is stored is handled.
 *
 * <p>Method: a real standby stops receiving WAL, the primary keeps running and is killed, the standby is promoted, and the
 * connections lead there. Then the same with an instance that publishes more than was lost, before the member is back; and
 * with a standby that lacks nothing, but is reached before it has replayed everything. Last, the data folder is replaced by
 * an older copy of itself.
 */
@Timeout(240)
class StandbyPromotionIT {
    private static final String STREAM = "orders";
    private static final int PARTITIONS = 2;
    private static final Settings SETTINGS = Settings.builder()
            .publishTimeout(Duration.ofSeconds(30))
            .networkTimeout(Duration.ofSeconds(5))
            .lease(Duration.ofSeconds(4))
            .heartbeat(Duration.ofMillis(500))
            .build();

    /** The SQLSTATEs of statements that reach a standby: another incarnation, a read-only transaction. */
    private static final List<String> REJECTED = List.of("ES011", "25006");

    @TempDir
    private Path folder;

    private final LostHistory lost = new LostHistory();
    private final Handled handled = new Handled();
    private final List<AutoCloseable> opened = new ArrayList<>();

    @AfterEach
    void closeAll() throws Exception {
        for (AutoCloseable one : opened.reversed()) {
            one.close();
        }
    }

    private <T extends AutoCloseable> T open(T resource) {
        opened.add(resource);
        return resource;
    }

    private EventSql openEventSql(DataSource database) {
        return open(EventSql.builder(database)
                .settings(SETTINGS)
                .listener(lost)
                .publishListener(lost)
                .build());
    }

    private static void publish(EventSql eventSql, String prefix, int count) {
        eventSql.publisher()
                .publishAll(
                        STREAM,
                        IntStream.range(0, count)
                                .mapToObj(i -> Event.ofText("key-" + i, prefix + i))
                                .toList());
    }

    private static void awaitCommitted(EventSql eventSql) {
        await().atMost(Duration.ofSeconds(120))
                .ignoreExceptions()
                .until(() -> eventSql.positions(STREAM, "c").stream().allMatch(p -> p.lag() == 0));
    }

    private void assertAllStoredHandled(DataSource database) throws SQLException {
        Set<String> stored =
                new HashSet<>(Sql.query(database, "SELECT convert_from(value, 'UTF8') FROM eventsql.events_" + STREAM));
        assertThat(handled.texts()).containsAll(stored);
    }

    /** Listeners of publishers are called by a thread of their own. */
    private void assertPublishedLost(Range... ranges) {
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(lost.published()).containsExactlyInAnyOrder(ranges));
    }

    /** Returns the heads of the partitions. */
    private static List<Long> heads(DataSource database) throws SQLException {
        return Sql.query(database, "SELECT next_offset FROM eventsql.partition_head ORDER BY partition").stream()
                .map(Long::valueOf)
                .toList();
    }

    private static List<Range> lostRanges(List<Long> kept, List<Long> before) {
        return IntStream.range(0, PARTITIONS)
                .filter(p -> kept.get(p) < before.get(p))
                .mapToObj(p -> new Range(STREAM, p, kept.get(p), before.get(p)))
                .toList();
    }

    private static void awaitReplayed(EmbeddedEventsDb primary) {
        await().atMost(Duration.ofSeconds(120))
                .until(() -> Sql.queryLong(
                                primary.adminDataSource(),
                                "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()")
                        == 1);
    }

    private HikariDataSource promoted(EmbeddedEventsDb primary, EmbeddedStandby standby) throws SQLException {
        primary.crash();
        standby.restart();
        Sql.query(standby.adminDataSource(), "SELECT pg_promote(true, 60)");
        String url = primary.jdbcUrl().replace(":" + primary.port() + "/", ":" + standby.port() + "/");
        return open(Pools.pool(primary, url));
    }

    @Test
    void promotion_endOfTheLogLost_isReportedAndEverythingStoredIsHandled() throws Exception {
        EmbeddedEventsDb primary = open(
                EmbeddedEventsDb.builder().standbys(StandbyMode.ASYNCHRONOUS).start());
        EmbeddedStandby standby = primary.standbys().getFirst();
        RedirectedDataSource database = new RedirectedDataSource(open(Pools.pool(primary)));
        EventSql eventSql = openEventSql(database);
        eventSql.createStream(TestStreams.of(STREAM).withPartitions(PARTITIONS).withSegmentSize(1_000));
        eventSql.subscribe(ConsumerSpec.of(STREAM, "c"), handled::add);
        publish(eventSql, "kept", 50);
        awaitCommitted(eventSql);
        List<Long> kept = heads(database);
        awaitReplayed(primary);
        standby.stop();
        publish(eventSql, "lost", 50);
        awaitCommitted(eventSql);
        List<Long> before = heads(database);

        DataSource after = promoted(primary, standby);
        assertThat(heads(after)).as("kept by the standby").isEqualTo(kept);
        database.redirect(after);
        publish(eventSql, "new", 20);
        awaitCommitted(eventSql);
        assertAllStoredHandled(after);
        assertThat(lost.consumed()).containsExactlyInAnyOrderElementsOf(lostRanges(kept, before));
        assertPublishedLost(lostRanges(kept, before).toArray(Range[]::new));
    }

    @Test
    void promotion_anotherPublisherPassesTheLostOffsets_everythingStoredIsHandled() throws Exception {
        EmbeddedEventsDb primary = open(
                EmbeddedEventsDb.builder().standbys(StandbyMode.ASYNCHRONOUS).start());
        EmbeddedStandby standby = primary.standbys().getFirst();
        RedirectedDataSource database = new RedirectedDataSource(open(Pools.pool(primary)));
        EventSql eventSql = openEventSql(database);
        eventSql.createStream(TestStreams.of(STREAM).withPartitions(PARTITIONS).withSegmentSize(1_000));
        eventSql.subscribe(ConsumerSpec.of(STREAM, "c"), handled::add);
        publish(eventSql, "kept", 50);
        awaitCommitted(eventSql);
        List<Long> kept = heads(database);
        awaitReplayed(primary);
        standby.stop();
        publish(eventSql, "lost", 50);
        awaitCommitted(eventSql);
        List<Long> before = heads(database);

        DataSource after = promoted(primary, standby);
        try (EventSql other = EventSql.builder(after).settings(SETTINGS).build()) {
            publish(other, "other", 300);
        }
        database.redirect(after);
        awaitCommitted(eventSql);
        publish(eventSql, "new", 20);
        awaitCommitted(eventSql);
        assertAllStoredHandled(after);
        assertThat(lost.consumed()).containsExactlyInAnyOrderElementsOf(lostRanges(kept, before));
        assertPublishedLost(lostRanges(kept, before).toArray(Range[]::new));
    }

    /** Shown before the fix: events that the standby had received, but not replayed yet, were reported as lost. */
    @Test
    void promotion_standbyIsReachedBeforeItHasReplayedEverything_nothingIsReported() throws Exception {
        EmbeddedEventsDb primary = open(
                EmbeddedEventsDb.builder().standbys(StandbyMode.ASYNCHRONOUS).start());
        EmbeddedStandby standby = primary.standbys().getFirst();
        RedirectedDataSource database = new RedirectedDataSource(open(Pools.pool(primary)));
        CountDownLatch rejected = new CountDownLatch(3);
        EventSql eventSql = open(EventSql.builder(database)
                .settings(SETTINGS)
                .listener(lost)
                .publishListener(lost)
                .publishListener(new PublishListener() {
                    @Override
                    public void appendFailed(int shard, Throwable error) {
                        if (error instanceof SQLException e && REJECTED.contains(e.getSQLState())) {
                            rejected.countDown();
                        }
                    }
                })
                .build());
        eventSql.createStream(TestStreams.of(STREAM).withPartitions(PARTITIONS).withSegmentSize(1_000));
        eventSql.subscribe(ConsumerSpec.of(STREAM, "c"), handled::add);
        publish(eventSql, "replayed", 50);
        awaitCommitted(eventSql);
        awaitReplayed(primary);
        Sql.query(standby.adminDataSource(), "SELECT pg_wal_replay_pause()");
        publish(eventSql, "received", 50);
        awaitCommitted(eventSql);
        List<Long> before = heads(database);
        await().atMost(Duration.ofSeconds(120))
                .until(() -> Sql.queryLong(
                                primary.adminDataSource(),
                                "SELECT count(*) FROM pg_stat_replication WHERE flush_lsn >= pg_current_wal_lsn()")
                        == 1);

        primary.crash();
        String url = primary.jdbcUrl().replace(":" + primary.port() + "/", ":" + standby.port() + "/");
        DataSource after = open(Pools.pool(primary, url));
        database.redirect(after);
        CompletableFuture<EventPosition> next =
                eventSql.publisher().publishAsync(STREAM, Event.ofText("key-0", "next"));
        assertThat(rejected.await(120, TimeUnit.SECONDS)).isTrue();
        Sql.query(standby.adminDataSource(), "SELECT pg_wal_replay_resume()");
        Sql.query(standby.adminDataSource(), "SELECT pg_promote(true, 60)");
        EventPosition position = next.get(120, TimeUnit.SECONDS);
        assertThat(position.offset()).isGreaterThanOrEqualTo(before.get(position.partition()));
        awaitCommitted(eventSql);
        assertAllStoredHandled(after);
        assertThat(lost.consumed()).isEmpty();
        assertThat(lost.published()).isEmpty();
    }

    @Test
    void dataFolder_replacedByAnOlderCopy_isReportedAndEverythingStoredIsHandled() throws Exception {
        Path data = folder.resolve("server");
        EmbeddedEventsDb eventsDb =
                open(EmbeddedEventsDb.builder().dataFolder(data).durable(false).start());
        HikariDataSource database = open(Pools.pool(eventsDb));
        EventSql eventSql = openEventSql(database);
        eventSql.createStream(TestStreams.of(STREAM).withPartitions(PARTITIONS).withSegmentSize(1_000));
        eventSql.subscribe(ConsumerSpec.of(STREAM, "c"), handled::add);
        publish(eventSql, "kept", 50);
        awaitCommitted(eventSql);
        List<Long> kept = heads(database);
        eventsDb.stop();
        copy(data.resolve("data"), folder.resolve("copy"));
        eventsDb.restart();
        publish(eventSql, "lost", 50);
        awaitCommitted(eventSql);
        List<Long> before = heads(database);

        eventsDb.stop();
        remove(data.resolve("data"));
        copy(folder.resolve("copy"), data.resolve("data"));
        eventsDb.restart();
        publish(eventSql, "new", 20);
        awaitCommitted(eventSql);
        assertAllStoredHandled(database);
        assertThat(lost.consumed()).containsExactlyInAnyOrderElementsOf(lostRanges(kept, before));
        assertPublishedLost(lostRanges(kept, before).toArray(Range[]::new));
    }

    private static void copy(Path from, Path to) throws IOException {
        try (Stream<Path> paths = Files.walk(from)) {
            for (Path each : paths.toList()) {
                Files.copy(each, to.resolve(from.relativize(each).toString()), StandardCopyOption.COPY_ATTRIBUTES);
            }
        }
    }

    private static void remove(Path path) throws IOException {
        try (Stream<Path> paths = Files.walk(path)) {
            for (Path each : paths.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(each);
            }
        }
    }
}
