package io.eventsql.internal.retain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.OffsetOutOfRangeException;
import io.eventsql.OutOfRangePolicy;
import io.eventsql.PartitionState;
import io.eventsql.RetainedSegment;
import io.eventsql.RetainedSegment.Limit;
import io.eventsql.Retention;
import io.eventsql.RetentionStatus;
import io.eventsql.Settings;
import io.eventsql.StartPosition;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Segments of 100 events expire by each limit; readers delay only what they read. */
@Timeout(120)
class RetentionIT {
    private static RetentionFixture fixture;
    private static EventSql eventSql;

    private final String stream = RetentionFixture.newStream();

    @BeforeAll
    static void open() {
        fixture = new RetentionFixture();
        eventSql = fixture.eventSql;
    }

    @AfterAll
    static void close() {
        fixture.close();
    }

    private void create(Retention retention) {
        eventSql.createStream(
                StreamSpec.of(stream).withPartitions(1).withSegmentSize(100).withRetention(retention));
    }

    private EventPosition at(long offset) {
        return new EventPosition(stream, 0, 0, offset);
    }

    private List<RetainedSegment> expiring() {
        return eventSql.retentionPlan(stream).stream()
                .filter(segment -> segment.expiresBy() != null)
                .toList();
    }

    private long rows() throws SQLException {
        return Sql.queryLong(fixture.database, "SELECT count(*) FROM eventsql.events_" + stream);
    }

    @Test
    void age_expiresAsPlanned_countsIt() throws SQLException {
        create(Retention.FOREVER.withMaxAge(Duration.ofHours(1)));
        fixture.publish(stream, 250);
        fixture.age(stream, Duration.ofHours(2));
        fixture.publish(stream, 30);
        assertThat(fixture.logStart(stream)).isZero();
        RetentionStatus before = eventSql.retentionStatus(0);

        List<RetainedSegment> plan = eventSql.retentionPlan(stream);
        assertThat(plan).extracting(RetainedSegment::firstOffset).containsExactly(0L, 100L, 200L);
        assertThat(plan).extracting(RetainedSegment::endOffset).containsExactly(100L, 200L, 280L);
        assertThat(plan).extracting(RetainedSegment::active).containsExactly(false, false, true);
        assertThat(plan).extracting(RetainedSegment::expiresBy).containsExactly(Limit.AGE, Limit.AGE, null);
        assertThat(plan.getLast().expiresAt())
                .isBetween(Instant.now().plusSeconds(3_500), Instant.now().plusSeconds(3_700));
        fixture.pass();

        assertThat(fixture.logStart(stream)).isEqualTo(200);
        assertThat(rows()).isEqualTo(80);
        assertThat(expiring()).isEmpty();
        RetentionStatus after = eventSql.retentionStatus(0);
        assertThat(after.expiredEvents() - before.expiredEvents()).isEqualTo(200);
        assertThat(after.expiredSegments() - before.expiredSegments()).isEqualTo(2);
        assertThat(after.expiredBytes() - before.expiredBytes())
                .isEqualTo(plan.get(0).bytes() + plan.get(1).bytes());
    }

    /** One between others was dropped by hand; whether the catalog still has it makes no difference. */
    @Test
    void eventRange_segmentIsMissing_returnsTheOthers() throws SQLException {
        create(Retention.FOREVER);
        fixture.publish(stream, 250);
        String table = Sql.query(
                        fixture.database,
                        "SELECT g.table_name FROM eventsql.segment g JOIN eventsql.stream s USING (stream_id)"
                                + " WHERE s.name = ? AND g.first_offset = 100",
                        stream)
                .getFirst();
        Sql.execute(fixture.database, "DROP TABLE eventsql." + table);
        String events = "SELECT count(*) FROM eventsql.event_range_v1('" + stream + "', 0, 0, 1000)";
        assertThat(Sql.queryLong(fixture.database, events)).isEqualTo(150);
        Sql.execute(fixture.database, "SELECT eventsql.reconcile_segments_v1(" + fixture.streamId(stream) + ", 0)");
        assertThat(Sql.queryLong(fixture.database, events)).isEqualTo(150);
    }

    /** All later events get a time that is not before that of the last one. */
    @Test
    void age_clockWasAheadOnce_segmentsExpireAllTheSame() throws SQLException {
        create(Retention.FOREVER.withMaxAge(Duration.ofHours(1)));
        fixture.publish(stream, 10);
        fixture.age(stream, Duration.ofDays(-365));
        fixture.publish(stream, 200);
        fixture.pass();
        assertThat(fixture.segments(stream)).startsWith("0-100 closed", "100-200 closed");
        Sql.execute(
                fixture.database,
                "UPDATE eventsql.segment SET last_published_at = last_published_at - interval '2 hours'"
                        + " WHERE state = 'closed' AND stream_id = " + fixture.streamId(stream));
        fixture.pass();
        assertThat(fixture.logStart(stream)).isEqualTo(200);
    }

    @Test
    void events_theNewestStay() throws SQLException {
        create(Retention.FOREVER.withMaxEvents(150));
        fixture.publish(stream, 349);
        fixture.pass();
        assertThat(fixture.logStart(stream)).isEqualTo(100);
        fixture.publish(stream, 1);
        fixture.pass();
        assertThat(fixture.logStart(stream)).isEqualTo(200);
        fixture.publish(stream, 100);
        assertThat(expiring()).extracting(RetainedSegment::expiresBy).containsExactly(Limit.EVENTS);
    }

    @Test
    void bytes_theNewestStay() throws SQLException {
        create(Retention.FOREVER);
        fixture.publish(stream, 450);
        List<RetainedSegment> plan = eventSql.retentionPlan(stream);
        long newest = plan.get(3).bytes() + plan.get(4).bytes();
        eventSql.alterStream(StreamSpec.of(stream)
                .withPartitions(1)
                .withSegmentSize(100)
                .withRetention(Retention.FOREVER.withMaxBytes(newest)));
        assertThat(expiring())
                .extracting(RetainedSegment::expiresBy)
                .containsOnly(Limit.BYTES)
                .hasSize(3);
        fixture.pass();
        assertThat(fixture.logStart(stream)).isEqualTo(300);
    }

    @Test
    void forever_nothingExpires() throws SQLException {
        create(Retention.FOREVER);
        fixture.publish(stream, 250);
        fixture.age(stream, Duration.ofDays(10_000));
        fixture.pass();
        assertThat(fixture.logStart(stream)).isZero();
        assertThat(rows()).isEqualTo(250);
    }

    @Test
    void handled_byAllConsumers_expires() throws SQLException {
        create(Retention.FOREVER.withExpireHandled());
        fixture.publish(stream, 350);
        fixture.pass();
        assertThat(fixture.logStart(stream)).isZero(); // no consumer
        fixture.commit(stream, "fast", 0, 350);
        fixture.commit(stream, "slow", 0, 199);
        fixture.pass();
        assertThat(fixture.logStart(stream)).isEqualTo(100);
        fixture.commit(stream, "slow", 0, 300);
        fixture.pass();
        assertThat(fixture.logStart(stream)).isEqualTo(300);
    }

    @Test
    void handled_consumerWithoutAnyOffset_keepsEvents() throws SQLException {
        create(Retention.FOREVER.withExpireHandled());
        fixture.publish(stream, 150);
        fixture.commit(stream, "fast", 0, 150);
        Sql.execute(
                fixture.database,
                "INSERT INTO eventsql.consumer (stream_id, name) VALUES (" + fixture.streamId(stream) + ", 'new')");
        fixture.pass();
        assertThat(fixture.logStart(stream)).isZero();
    }

    @Test
    void handled_abandonedConsumer_keepsNothing() throws SQLException {
        create(Retention.FOREVER.withExpireHandled().withAbandonedAfter(Duration.ofDays(2)));
        fixture.publish(stream, 150);
        fixture.commit(stream, "abandoned", 0, 50);
        fixture.age(stream, Duration.ofDays(3));
        fixture.commit(stream, "active", 0, 100);
        fixture.pass();
        assertThat(fixture.logStart(stream)).isEqualTo(100);
    }

    /** It had nothing to commit: the time counts from its next event. */
    @Test
    void handled_consumerOfAQuietStream_isNotAbandonedByTheNextEvent() throws SQLException {
        create(Retention.FOREVER.withExpireHandled().withAbandonedAfter(Duration.ofDays(2)));
        fixture.publish(stream, 50);
        fixture.commit(stream, "waiting", 0, 50);
        fixture.age(stream, Duration.ofDays(3));
        fixture.publish(stream, 100);
        fixture.commit(stream, "fast", 0, 150);
        fixture.pass();
        assertThat(fixture.logStart(stream)).isZero();
    }

    @Test
    void quietPartition_isEmptiedAtOnce_andContinues() throws SQLException {
        create(Retention.FOREVER.withMaxAge(Duration.ofHours(1)));
        fixture.publish(stream, 130);
        fixture.age(stream, Duration.ofHours(2));
        assertThat(expiring()).extracting(RetainedSegment::endOffset).containsExactly(100L, 130L);
        fixture.pass();
        assertThat(fixture.logStart(stream)).isEqualTo(130);
        assertThat(rows()).isZero();
        assertThat(eventSql.retentionPlan(stream)).isEmpty();
        assertThat(fixture.publish(stream, 1)).containsExactly(at(130));
        assertThat(eventSql.read(at(130), 10)).hasSize(1);
    }

    @Test
    void belowTheLogsStart_readersGetTheirPolicy() throws Exception {
        create(Retention.FOREVER.withMaxAge(Duration.ofHours(1)));
        fixture.publish(stream, 150);
        fixture.age(stream, Duration.ofHours(2));
        Instant old = Instant.now().minus(Duration.ofHours(3));
        fixture.publish(stream, 20);
        // Killed between two steps: events whose segment is not truncated yet can still be read.
        await().until(() -> {
            Sql.query(fixture.database, "SELECT eventsql.expire_v1()");
            return fixture.logStart(stream) == 100;
        });
        assertThat(eventSql.read(at(100), 100)).hasSize(70);
        fixture.pass();
        assertThat(eventSql.read(at(100), 100)).hasSize(70);
        assertThatThrownBy(() -> eventSql.read(at(20), 10)).isInstanceOf(OffsetOutOfRangeException.class);

        Handled earliest = new Handled();
        try (Subscription member = eventSql.subscribe(
                ConsumerSpec.of(stream, "earliest")
                        .withStartPosition(StartPosition.atOffset(20))
                        .withOutOfRangePolicy(OutOfRangePolicy.EARLIEST),
                earliest::add)) {
            earliest.awaitSize(70).assertOnceAndInOrder();
        }
        Handled since = new Handled();
        try (Subscription member = eventSql.subscribe(
                ConsumerSpec.of(stream, "time").withStartPosition(StartPosition.at(old)), since::add)) {
            since.awaitSize(70).assertOnceAndInOrder();
        }
        Handled latest = new Handled();
        try (Subscription member = eventSql.subscribe(
                ConsumerSpec.of(stream, "latest")
                        .withStartPosition(StartPosition.atOffset(20))
                        .withOutOfRangePolicy(OutOfRangePolicy.LATEST),
                latest::add)) {
            await().until(() -> !eventSql.positions(stream, "latest").isEmpty()
                    && eventSql.positions(stream, "latest").getFirst().nextOffset() == 170);
            fixture.publish(stream, 1);
            latest.awaitSize(1);
        }
        try (Subscription member = eventSql.subscribe(
                ConsumerSpec.of(stream, "fail").withStartPosition(StartPosition.atOffset(20)), latest::add)) {
            await().until(() ->
                    eventSql.consumer(stream, "fail").state().getFirst().status() == PartitionState.Status.STOPPED);
        }
    }

    /** Neither publishing nor the space of other segments depends on a transaction that has read one. */
    @Test
    void idleReader_delaysOnlyTheSegmentItReads() throws Exception {
        create(Retention.FOREVER.withMaxEvents(100));
        fixture.publish(stream, 450);
        try (Connection reader = fixture.database.getConnection()) {
            reader.setAutoCommit(false);
            Sql.query(reader, "SELECT count(*) FROM eventsql.events_" + stream + "__p0_s1"); // expires
            Sql.query(reader, "SELECT count(*) FROM eventsql.events_" + stream + "__p0_s4"); // the head is in it
            fixture.pass();
            assertThat(fixture.logStart(stream)).isEqualTo(300);
            assertThat(fixture.segments(stream))
                    .contains("100-200 expired")
                    .doesNotContain("0-100 expired", "200-300 expired");
            drop();
            fixture.publish(stream, 200);
            fixture.pass();
            assertThat(fixture.logStart(stream)).isEqualTo(500);
            assertThat(fixture.segments(stream)).contains("100-200 expired").doesNotContain("300-400 expired");
            reader.rollback();
        }
        fixture.pass();
        assertThat(rows()).isEqualTo(150);
        drop();
        assertThat(fixture.segments(stream))
                .noneMatch(segment -> segment.endsWith("expired") || segment.endsWith("empty"));
    }

    /** Such a reader has a lock on every table of the stream. */
    @Test
    void idleReaderOfTheStream_publishingContinues_spaceIsReturnedAfterwards() throws Exception {
        create(Retention.FOREVER.withMaxEvents(100));
        fixture.publish(stream, 350);
        try (Connection reader = fixture.database.getConnection()) {
            reader.setAutoCommit(false);
            Sql.query(reader, "SELECT count(*) FROM eventsql.events_" + stream);
            fixture.pass();
            assertThat(fixture.logStart(stream)).isEqualTo(200);
            assertThat(fixture.segments(stream)).contains("0-100 expired", "100-200 expired");
            fixture.publish(stream, 350);
            assertThat(drop()).isZero();
            reader.rollback();
        }
        fixture.pass();
        assertThat(rows()).isEqualTo(100);
        drop();
        assertThat(fixture.segments(stream))
                .noneMatch(segment -> segment.endsWith("expired") || segment.endsWith("empty"));
    }

    private static int drop() throws SQLException {
        int dropped = 0;
        int more;
        do {
            more = Integer.parseInt(Sql.query(fixture.database, "SELECT eventsql.drop_empty_segments_v1(false)")
                    .getFirst());
            dropped += more;
        } while (more > 0);
        return dropped;
    }

    /** Goal: an interrupted step leaves a log that works. Method: each step is rolled back once, then the pass continues. */
    @Test
    void interruptedSteps_areRepeated() throws Exception {
        create(Retention.FOREVER.withMaxEvents(100));
        fixture.publish(stream, 550);
        String result;
        do {
            try (Connection connection = fixture.database.getConnection()) {
                connection.setAutoCommit(false);
                Sql.query(connection, "SELECT eventsql.expire_v1()");
                connection.rollback();
            }
            assertThat(eventSql.read(at(fixture.logStart(stream)), 1_000)).isNotEmpty();
            result = Sql.query(fixture.database, "SELECT eventsql.expire_v1()").getFirst();
        } while (result.equals("more") || result.equals("waiting"));
        assertThat(fixture.logStart(stream)).isEqualTo(400);
        assertThat(rows()).isEqualTo(150);
    }

    @Test
    void burstOfTinySegments_losesNothingWithinThePolicy() throws Exception {
        create(Retention.FOREVER.withMaxEvents(3_000));
        AtomicBoolean ended = new AtomicBoolean();
        try (ExecutorService threads = Executors.newSingleThreadExecutor()) {
            Future<Void> publishing = threads.submit(() -> {
                for (int i = 0; i < 60; i++) {
                    fixture.publish(stream, 250);
                }
                ended.set(true);
                return null;
            });
            while (!ended.get() && !publishing.isDone()) {
                fixture.pass();
                drop();
            }
            publishing.get(120, TimeUnit.SECONDS);
        }
        fixture.pass();
        long start = fixture.logStart(stream);
        assertThat(start).isBetween(10_000L, 12_000L);
        assertThat(rows()).isEqualTo(15_000 - start);
        await().untilAsserted(
                        () -> { // the last segments are still being added, which keeps tables from being dropped
                            drop();
                            assertThat(fixture.segments(stream)).hasSizeLessThan(100);
                        });
    }

    /** The background task does all of it, and several processes do not disturb each other. */
    @Test
    void keepers_ofTwoProcesses_expireTruncateAndDrop() throws Exception {
        create(Retention.FOREVER.withMaxEvents(100));
        fixture.publish(stream, 950);
        Shards shards = Shards.open(fixture.cluster.dataSources(), Settings.defaults());
        try {
            Shard shard = shards.get(0);
            RetentionKeeper one = new RetentionKeeper(shard, Duration.ofMillis(10));
            RetentionKeeper two = new RetentionKeeper(shard, Duration.ofMillis(10));
            await().until(() -> {
                one.runStep();
                two.runStep();
                return fixture.segments(stream).stream()
                        .noneMatch(segment ->
                                segment.startsWith("0-") || segment.endsWith("expired") || segment.endsWith("empty"));
            });
        } finally {
            shards.close(System.nanoTime());
        }
        assertThat(fixture.logStart(stream)).isEqualTo(800);
        assertThat(rows()).isEqualTo(150);
    }

    /** All processes have ended in the middle of a pass, for hours; or the clock was ahead. */
    @Test
    void passOfBeforeAnOutageOrAClockSetBack_theNextOneBeginsSoon() throws SQLException {
        create(Retention.FOREVER.withMaxEvents(100));
        for (String state : List.of(
                "is_running = true, began_at = clock_timestamp() - interval '10 hours'",
                "is_running = false, began_at = clock_timestamp() + interval '1 day', ended_at = clock_timestamp()"
                        + " + interval '1 day'")) {
            fixture.publish(stream, 250);
            Sql.execute(fixture.database, "UPDATE eventsql.retention_pass SET " + state);
            fixture.pass(); // completes the former one
            long before = fixture.logStart(stream);
            fixture.publish(stream, 250);
            await().atMost(Duration.ofSeconds(30)).untilAsserted(() -> {
                Sql.query(fixture.database, "SELECT eventsql.expire_v1('10 ms')");
                assertThat(fixture.logStart(stream)).as(state).isGreaterThan(before);
            });
        }
    }

    /** What one partition does not allow is no reason to keep the events of others. */
    @Test
    void truncateFails_othersExpire_andItIsLogged() throws Exception {
        create(Retention.FOREVER.withMaxEvents(100));
        String other = RetentionFixture.newStream();
        eventSql.createStream(StreamSpec.of(other)
                .withPartitions(1)
                .withSegmentSize(100)
                .withRetention(Retention.FOREVER.withMaxEvents(100)));
        Sql.execute(
                fixture.database,
                "CREATE FUNCTION refuse_truncate() RETURNS trigger LANGUAGE plpgsql AS $$"
                        + " BEGIN RAISE EXCEPTION 'no truncate here'; END $$",
                "CREATE TRIGGER refuse BEFORE TRUNCATE ON eventsql.events_" + stream
                        + "__p0_s0 FOR EACH STATEMENT EXECUTE FUNCTION refuse_truncate()");
        fixture.publish(stream, 550);
        fixture.publish(other, 550);
        Shards shards = Shards.open(fixture.cluster.dataSources(), Settings.defaults());
        try (CapturedLog log = CapturedLog.ofRetaining()) {
            RetentionKeeper keeper = new RetentionKeeper(shards.get(0), Duration.ofMillis(10));
            await().untilAsserted(() -> {
                keeper.runStep();
                assertThat(fixture.segments(other)).noneMatch(segment -> segment.startsWith("0-"));
                assertThat(log.lines("no truncate here")).isNotEmpty();
            });
        } finally {
            shards.close(System.nanoTime());
            Sql.execute(fixture.database, "DROP FUNCTION refuse_truncate CASCADE");
        }
        fixture.pass();
        assertThat(fixture.logStart(stream)).isEqualTo(400);
    }
}
