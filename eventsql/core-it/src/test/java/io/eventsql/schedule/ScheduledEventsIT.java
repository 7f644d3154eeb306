package io.eventsql.schedule;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.EventOutcomeUnknownException;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.InvalidInputException;
import io.eventsql.ScheduleBacklog;
import io.eventsql.ScheduleId;
import io.eventsql.ScheduledEvent;
import io.eventsql.StoredEvent;
import io.eventsql.UnknownStreamException;
import io.eventsql.fixture.BlockedRelays;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Goal: a scheduled event is appended once, when it is due and never before, unless it was cancelled. */
@Timeout(120)
class ScheduledEventsIT {
    private static final Duration DEADLINE = Duration.ofSeconds(120);

    private static TestCluster shared;
    private static EventSql ofShared;

    private final String stream = TestStreams.newName();
    private TestCluster cluster;
    private EventSql eventSql;

    @BeforeAll
    static void openShared() {
        shared = TestCluster.ofShards(1);
        ofShared = shared.open();
    }

    @AfterAll
    static void closeShared() {
        shared.close();
    }

    private void open() {
        open(shared, ofShared);
    }

    /** Opens databases that no other test uses. */
    private void openOwn(int shards) {
        TestCluster own = TestCluster.ofShards(shards);
        open(own, own.open());
    }

    private void open(TestCluster opened, EventSql instance) {
        cluster = opened;
        eventSql = instance;
        eventSql.createStream(TestStreams.of(stream).withPartitions(2));
    }

    @AfterEach
    void close() {
        if (cluster != shared) {
            cluster.close();
        }
    }

    private DataSource database() {
        return cluster.dataSources().getFirst();
    }

    private UUID schedule(Event event, Duration in) {
        return eventSql.publisher().schedule(stream, event, Instant.now().plus(in));
    }

    private List<StoredEvent> stored(int shard, int partition) {
        return eventSql.read(new EventPosition(stream, shard, partition, 0), 1_000);
    }

    private List<StoredEvent> stored() {
        List<StoredEvent> all = new ArrayList<>();
        for (int shard = 0; shard < cluster.shards(); shard++) {
            for (int partition = 0; partition < 2; partition++) {
                all.addAll(stored(shard, partition));
            }
        }
        return all;
    }

    private List<String> texts() {
        return stored().stream().map(StoredEvent::text).toList();
    }

    private long ring(UUID id) throws SQLException {
        return Sql.queryLong(database(), "SELECT ring FROM eventsql.scheduled_event WHERE id = '" + id + "'");
    }

    @Test
    void schedule_manyTimes_areAppendedOnceWhenDueAndInTheirOrder() throws Exception {
        openOwn(2);
        Random random = Seeds.random("schedule_manyTimes");
        Map<String, UUID> ids = new HashMap<>();
        try (BlockedRelays ignored =
                BlockedRelays.of(cluster.dataSources())) { // until all are scheduled, however long that takes
            Instant begin = Instant.now().plusMillis(500);
            for (int i = 0; i < 200; i++) {
                Event event = i % 4 == 0 ? Event.ofText("" + i) : Event.ofText("k" + i % 10, "" + i);
                ids.put("" + i, eventSql.publisher().schedule(stream, event, begin.plusMillis(random.nextInt(1_000))));
            }
        }

        await().atMost(DEADLINE).untilAsserted(() -> assertThat(stored()).hasSize(200));

        assertThat(texts()).containsExactlyInAnyOrderElementsOf(ids.keySet());
        for (int shard = 0; shard < 2; shard++) {
            for (int partition = 0; partition < 2; partition++) {
                List<StoredEvent> events = stored(shard, partition);
                assertThat(events).isSortedAccordingTo(Comparator.comparing(e -> ids.get(e.text())));
                assertThat(events)
                        .allMatch(e -> !e.publishedAt().isBefore(ScheduleId.due(ids.get(e.text()))), "is not early");
            }
        }
        assertThat(eventSql.scheduledEvents(null, null, 1)).isEmpty();
    }

    @Test
    void schedule_inThePast_isAppendedAtOnce() {
        open();
        eventSql.publisher().schedule(stream, Event.ofText("past"), Instant.EPOCH);
        eventSql.publisher().schedule(stream, Event.tombstone("k"), Instant.MIN);
        await().atMost(DEADLINE).untilAsserted(() -> assertThat(stored()).hasSize(2));
        assertThat(stored()).filteredOn(StoredEvent::isTombstone).hasSize(1);
    }

    /** As after a downtime: more is overdue than one page holds, and the page ends by its bytes. */
    @Test
    void relay_moreBytesAreOverdueThanOnePageHolds_areAppendedInOrderBeforeWhatBecomesDue() throws Exception {
        TestCluster own = TestCluster.ofShards(1);
        own.open().close(); // the database belongs to a cluster now, which the lock would prevent
        List<String> expected = new ArrayList<>();
        try (BlockedRelays ignored =
                BlockedRelays.of(own.dataSources())) { // it begins its lease when all are scheduled
            open(own, own.open(settings -> settings.maxBatchBytes(1 << 10)));
            for (int i = 0; i < 40; i++) {
                String text = i + "x".repeat(300);
                expected.add(text);
                schedule(Event.ofText("key", text), Duration.ZERO);
            }
            await().atMost(DEADLINE) // longer ago than each pass searches again
                    .until(() -> Sql.queryLong(
                                    database(),
                                    "SELECT count(*) FROM eventsql.scheduled_event"
                                            + " WHERE due_at < clock_timestamp() - interval '3 seconds'")
                            == expected.size());
            expected.add("due later");
            schedule(Event.ofText("key", "due later"), Duration.ofSeconds(1));
        }

        await().atMost(DEADLINE).untilAsserted(() -> assertThat(stored()).hasSize(expected.size()));
        assertThat(texts()).containsExactlyElementsOf(expected);
    }

    @Test
    void publish_sameKeyAsAScheduledEvent_overtakesIt() {
        open();
        schedule(Event.ofText("k", "scheduled"), Duration.ofMillis(300));
        eventSql.publisher().publish(stream, Event.ofText("k", "immediate"));
        await().atMost(DEADLINE).untilAsserted(() -> assertThat(texts()).containsExactly("immediate", "scheduled"));
    }

    @Test
    void cancel_beforeItIsDue_isTrueOnceAndNothingIsAppended() {
        open();
        UUID cancelled = schedule(Event.ofText("k", "cancelled"), Duration.ofMillis(500));
        UUID kept = schedule(Event.ofText("k", "kept"), Duration.ofMillis(700));

        assertThat(eventSql.cancelScheduled(cancelled)).isTrue();
        assertThat(eventSql.cancelScheduled(cancelled)).isFalse();

        await().atMost(DEADLINE).untilAsserted(() -> assertThat(texts()).containsExactly("kept"));
        assertThat(eventSql.cancelScheduled(kept)).isFalse();
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> eventSql.cancelScheduled(UUID.randomUUID()))
                .withMessageContaining("id must be");
    }

    @Test
    void schedule_sameIdAgain_isScheduledOnceAndUnknownOnceDue() {
        open();
        UUID id = ScheduleId.next(Instant.now().plusSeconds(1));
        eventSql.publisher().schedule(stream, Event.ofText("once"), id);
        eventSql.publisher().schedule(stream, Event.ofText("once"), id);
        assertThat(eventSql.scheduledEvents(stream, null, 10)).hasSize(1);

        await().atMost(DEADLINE).untilAsserted(() -> assertThat(texts()).containsExactly("once"));

        assertThatExceptionOfType(EventOutcomeUnknownException.class)
                .isThrownBy(() -> eventSql.publisher().schedule(stream, Event.ofText("once"), id))
                .withMessageContaining("may have been appended");
        assertThat(eventSql.scheduledEvents(stream, null, 10)).isEmpty();
        assertThat(texts()).containsExactly("once");
    }

    @Test
    void schedule_invalid_isRejected() {
        open();
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> schedule(Event.ofText("x"), Duration.ofDays(4_000)))
                .withMessageContaining("days ahead");
        assertThatExceptionOfType(UnknownStreamException.class)
                .isThrownBy(() -> eventSql.publisher().schedule("none", Event.ofText("x"), Instant.now()));
    }

    @Test
    void scheduledEvents_severalShards_areListedInOrderByPages() {
        openOwn(2);
        eventSql.createStream(TestStreams.of("other").withPartitions(1));
        eventSql.publisher().schedule("other", Event.ofText("x"), Instant.now().plusSeconds(600));
        List<UUID> ids = new ArrayList<>();
        for (int i = 0; i < 25; i++) {
            ids.add(schedule(Event.ofText("k" + i, "12345"), Duration.ofHours(1 + i % 7)));
        }
        ids.sort(Comparator.naturalOrder());

        List<ScheduledEvent> listed = new ArrayList<>();
        UUID after = null;
        List<ScheduledEvent> page = eventSql.scheduledEvents(stream, after, 10);
        while (!page.isEmpty()) {
            listed.addAll(page);
            page = eventSql.scheduledEvents(stream, page.getLast().id(), 10);
        }

        assertThat(listed).extracting(ScheduledEvent::id).containsExactlyElementsOf(ids);
        assertThat(listed).allMatch(e -> e.due().equals(ScheduleId.due(e.id())) && e.valueBytes() == 5);
        assertThat(eventSql.scheduledEvents(null, null, 100)).hasSize(26);
        assertThat(eventSql.scheduleBacklogs())
                .hasSize(2)
                .allMatch(b -> b.overdue().isZero());
        assertThat(eventSql.scheduleBacklogs().stream()
                        .mapToLong(ScheduleBacklog::events)
                        .sum())
                .isEqualTo(26);
    }

    /** The relay of another instance has the lease, and would otherwise poll only after the interval. */
    @Test
    void schedule_byAProcessThatDoesNotRelay_isAppendedBeforeTheNextPoll() {
        cluster = TestCluster.ofShards(1);
        eventSql = cluster.open(
                settings -> settings.outboxLease(Duration.ofMinutes(10)).outboxPollInterval(Duration.ofMinutes(1)));
        eventSql.createStream(TestStreams.of(stream).withPartitions(2));
        await().atMost(DEADLINE)
                .untilAsserted(() -> assertThat(Sql.queryLong(
                                database(), "SELECT count(*) FROM eventsql.outbox_relay WHERE holder IS NOT NULL"))
                        .isOne());
        EventSql other = cluster.open(
                settings -> settings.outboxLease(Duration.ofMinutes(10)).outboxPollInterval(Duration.ofMinutes(1)));
        // Until the listening connection is there, signals are lost: each event is a new attempt.
        await().atMost(Duration.ofSeconds(120)).untilAsserted(() -> {
            other.publisher().schedule(stream, Event.ofText("x"), Instant.now().plusMillis(50));
            assertThat(stored()).isNotEmpty();
        });
    }

    @Test
    void relay_eventOfLaterBecomesDueSoon_movesToTheTableOfItsHour() throws SQLException {
        openOwn(1);
        UUID far = schedule(Event.ofText("far"), Duration.ofDays(400));
        UUID near = schedule(Event.ofText("near"), Duration.ofMinutes(30));
        assertThat(ring(far)).isEqualTo(8);
        assertThat(ring(near)).isLessThan(8);
        eventSql.close();
        Sql.execute(
                database(),
                "UPDATE eventsql.scheduled_event SET due_at = clock_timestamp() + interval '90 minutes' WHERE ring = 8");

        eventSql = cluster.open();

        await().atMost(DEADLINE).untilAsserted(() -> assertThat(ring(far)).isLessThan(8));
    }

    /** The ring has eight tables: the hour before last shares one with that six hours ahead. */
    @Test
    void relay_tableOfPassedHour_isEmptied() throws SQLException {
        openOwn(1);
        eventSql.close();
        long hour = Sql.queryLong(database(), "SELECT floor(extract(epoch FROM clock_timestamp()) / 3600)::bigint + 6");
        String table = "eventsql.scheduled_event_" + hour % 8;
        Sql.execute(
                database(),
                "INSERT INTO " + table + " (ring, due_at, id, stream, value, routing_hash) SELECT " + hour % 8
                        + ", now(), gen_random_uuid(), 'x', '', 0 FROM generate_series(1, 100)",
                "DELETE FROM " + table);

        eventSql = cluster.open();

        await().atMost(DEADLINE)
                .untilAsserted(() -> assertThat(Sql.queryLong(database(), "SELECT pg_relation_size('" + table + "')"))
                        .isZero());
    }

    @Test
    void relay_eventRejectedByTheDatabase_isRefusedAndOthersAreAppended() throws SQLException {
        open();
        Sql.execute(
                database(), "ALTER TABLE eventsql.events_" + stream + " ADD CONSTRAINT no_bad CHECK (key <> 'bad')");
        schedule(Event.ofText("bad", "refused"), Duration.ofMillis(100));
        schedule(Event.ofText("good", "stored"), Duration.ofMillis(100));

        await().atMost(DEADLINE).untilAsserted(() -> assertThat(texts()).containsExactly("stored"));
        await().atMost(DEADLINE)
                .untilAsserted(() -> assertThat(Sql.query(
                                database(), "SELECT key FROM eventsql.outbox_refused WHERE stream = ?", stream))
                        .containsExactly("bad"));
        assertThat(eventSql.scheduledEvents(stream, null, 10)).isEmpty();
    }

    /** Neither an uncommitted cancellation nor another session's lock on a row stops the others. */
    @Test
    void relay_dueEventLockedByATransaction_appendsOthersAndThatOneLater() throws SQLException {
        open();
        UUID locked = schedule(Event.ofText("locked"), Duration.ofSeconds(1));
        try (Connection connection = database().getConnection()) {
            connection.setAutoCommit(false);
            Sql.query(connection, "DELETE FROM eventsql.scheduled_event WHERE id = ? RETURNING id", locked);
            schedule(Event.ofText("other"), Duration.ofMillis(1_100));
            await().atMost(DEADLINE).untilAsserted(() -> assertThat(texts()).containsExactly("other"));
            connection.rollback();
        }
        await().atMost(DEADLINE).untilAsserted(() -> assertThat(texts()).contains("locked"));
    }

    @Test
    void clear_andDelete_deleteWhatIsScheduled() throws SQLException {
        open();
        String other = TestStreams.newName();
        eventSql.createStream(TestStreams.of(other).withPartitions(1));
        UUID kept = eventSql.publisher()
                .schedule(other, Event.ofText("x"), Instant.now().plusSeconds(3_600));
        schedule(Event.ofText("near"), Duration.ofHours(1));
        schedule(Event.ofText("far"), Duration.ofDays(10));

        eventSql.clear(stream, eventSql.previewClear(stream).confirmation());
        assertThat(scheduledIds(stream)).isEmpty();
        assertThat(scheduledIds(other)).containsExactly(kept.toString());

        schedule(Event.ofText("far"), Duration.ofDays(10));
        eventSql.deleteStream(stream, eventSql.previewDeleteStream(stream).confirmation());
        assertThat(scheduledIds(stream)).isEmpty();
        assertThat(scheduledIds(other)).containsExactly(kept.toString());
        assertThatExceptionOfType(UnknownStreamException.class)
                .isThrownBy(() -> schedule(Event.ofText("x"), Duration.ofHours(1)));
    }

    private List<String> scheduledIds(String ofStream) throws SQLException {
        return Sql.query(database(), "SELECT id FROM eventsql.scheduled_event WHERE stream = ?", ofStream);
    }

    @Test
    void erase_key_deletesItsScheduledEventsButTombstones() throws SQLException {
        open();
        schedule(Event.ofText("erased", "near"), Duration.ofHours(1));
        schedule(Event.ofText("erased", "far"), Duration.ofDays(10));
        UUID tombstone = schedule(Event.tombstone("erased").withHeaders(Map.of("name", "x")), Duration.ofHours(1));
        UUID other = schedule(Event.ofText("other", "near"), Duration.ofHours(1));

        assertThat(eventSql.erase(stream, "erased").isDone()).isTrue();

        assertThat(eventSql.scheduledEvents(stream, null, 10))
                .extracting(ScheduledEvent::id)
                .containsExactlyInAnyOrder(tombstone, other);
        assertThat(Sql.query(
                        database(),
                        "SELECT id FROM eventsql.scheduled_event WHERE headers IS NOT NULL AND stream = ?",
                        stream))
                .isEmpty();
    }
}
