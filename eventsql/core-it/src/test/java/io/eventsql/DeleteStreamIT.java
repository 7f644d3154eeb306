package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.fixture.BlockedRelays;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Deleting a stream on two shards, with everything that belongs to it and nothing else. */
@Timeout(120)
class DeleteStreamIT {
    /** Generous, so that only a hang fails. */
    private static final Duration DEADLINE = Duration.ofSeconds(120);

    private static TestCluster cluster;

    private final String kept = TestStreams.newName();
    private final String stream = "shop." + kept + "-v1";
    private EventSql eventSql;

    @BeforeAll
    static void createDatabases() {
        cluster = TestCluster.ofShards(2);
    }

    @AfterAll
    static void dropDatabases() {
        cluster.close();
    }

    @BeforeEach
    void open() {
        eventSql = cluster.open(settings -> settings.publishTimeout(Duration.ofMinutes(10)));
        eventSql.createStream(
                StreamSpec.of(stream).withPartitions(2).withSegmentSize(100).asJson());
        eventSql.createStream(StreamSpec.of(kept).withPartitions(2).withSegmentSize(100));
    }

    @AfterEach
    void closeInstances() {
        cluster.closeInstances();
    }

    private static DataSource shard() {
        return cluster.dataSources().getFirst();
    }

    private static void publish(EventSql by, String to, int events) {
        by.publisher()
                .publishAll(
                        to,
                        IntStream.range(0, events)
                                .mapToObj(i -> Event.ofText("k" + i, "{}"))
                                .toList());
    }

    private long delete() {
        return eventSql.deleteStream(
                stream, eventSql.previewDeleteStream(stream).confirmation());
    }

    /** Returns the tables and views whose names begin like those of the stream. */
    private List<String> relations() throws SQLException {
        return Sql.query(
                shard(), "SELECT relname FROM pg_class WHERE starts_with(relname, ?)", "events_shop_" + kept + "_v1_");
    }

    /** Returns the number of rows with this stream's name. */
    private long named(String table) throws SQLException {
        return cluster.sum("SELECT count(*) FROM eventsql." + table + " WHERE name = '" + stream + "'");
    }

    /** Returns the number of rows that belong to no stream. */
    private static long orphans(String table) throws SQLException {
        return cluster.sum("SELECT count(*) FROM eventsql." + table
                + " WHERE stream_id NOT IN (SELECT stream_id FROM eventsql.stream)");
    }

    private void handleAll(String of, int events) {
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(ConsumerSpec.of(of, "mailer"), handled::add)) {
            handled.awaitSize(events);
        }
    }

    @Test
    void delete_streamWithConsumers_leavesNothingOfIt() throws SQLException {
        publish(eventSql, stream, 450);
        publish(eventSql, kept, 30);
        handleAll(stream, 450);
        handleAll(kept, 30);

        int functions = appendFunctions().size();
        DeletePreview preview = eventSql.previewDeleteStream(stream);
        assertThat(preview.events()).isEqualTo(450);
        assertThat(preview.consumers()).containsExactly("mailer");
        assertThat(preview.shards())
                .hasSize(2)
                .allSatisfy(shard -> assertThat(shard.segments()).isPositive());
        assertThat(eventSql.deleteStream(stream, preview.confirmation())).isEqualTo(450);

        assertThat(relations()).isEmpty();
        assertThat(appendFunctions()).hasSize(functions - 1);
        assertThat(named("stream")).isZero();
        for (String table : List.of("stream_partition", "segment", "producer_batch", "consumer")) {
            assertThat(orphans(table)).as(table).isZero();
        }
        assertThat(named("deleted_stream")).isZero();
        assertThat(cluster.sum("SELECT count(*) FROM eventsql.consumer_offset o WHERE NOT EXISTS"
                        + " (SELECT FROM eventsql.consumer c WHERE c.consumer_id = o.consumer_id)"))
                .isZero();
        assertThat(eventSql.streams())
                .extracting(StreamSpec::name)
                .contains(kept)
                .doesNotContain(stream);
        assertThatThrownBy(() -> eventSql.previewDeleteStream(stream)).isInstanceOf(UnknownStreamException.class);
        publish(eventSql, kept, 30);
        assertThat(eventSql.positions(kept, "mailer").stream()
                        .mapToLong(ConsumerPosition::lag)
                        .sum())
                .isEqualTo(30);
        eventSql.createStream(StreamSpec.of(stream).withPartitions(3));
        publish(eventSql, stream, 1);
        assertThat(eventSql.previewDeleteStream(stream).events()).isOne();
    }

    /**
     * Goal: publishers of the deleted stream fail at once, in any process, and it is not created again; those of another one,
     * its consumer and its retention continue.
     */
    @Test
    void delete_publishersRun_theirCallsFailAtOnceAndOtherStreamsContinue() throws Exception {
        EventSql other = cluster.open(settings -> settings.publishTimeout(Duration.ofMinutes(10)));
        eventSql.alterStream(StreamSpec.of(kept)
                .withPartitions(2)
                .withSegmentSize(100)
                .withRetention(Retention.FOREVER.withMaxEvents(100)));
        Handled handled = new Handled();
        AtomicBoolean stopped = new AtomicBoolean();
        try (CapturedLog log = CapturedLog.of("retain");
                ExecutorService executor = Executors.newCachedThreadPool();
                Subscription ignored = eventSql.subscribe(
                        ConsumerSpec.of(kept, "c").withOutOfRangePolicy(OutOfRangePolicy.EARLIEST), handled::add)) {
            Future<Integer> keeping = executor.submit(() -> {
                int published = 0;
                for (; !stopped.get(); published += 50) {
                    publish(other, kept, 50);
                }
                return published;
            });
            List<Future<UnknownStreamException>> failing = List.of(eventSql, other).stream()
                    .map(by -> executor.submit(() -> publishUntilUnknown(by)))
                    .toList();
            try {
                await().atMost(DEADLINE)
                        .until(() -> eventSql.previewDeleteStream(stream).events() > 200);

                delete();

                for (Future<UnknownStreamException> failure : failing) {
                    assertThat(failure.get(120, TimeUnit.SECONDS)).hasMessageContaining(stream);
                }
                int handledBefore = handled.size();
                await().atMost(DEADLINE).until(() -> handled.size() > handledBefore + 200);
                await().atMost(DEADLINE)
                        .until(() -> Sql.query(shard(), "SELECT eventsql.expire_v1()")
                                .equals(List.of("finished")));
                assertThat(eventSql.retentionStatus(0).expiredEvents()).isPositive();
            } finally {
                stopped.set(true);
            }
            int published = keeping.get(120, TimeUnit.SECONDS);
            await().atMost(DEADLINE)
                    .until(() -> eventSql.positions(kept, "c").stream().allMatch(position -> position.lag() == 0));
            assertThat(handled.size()).isLessThanOrEqualTo(published);
            assertThat(eventSql.streams())
                    .extracting(StreamSpec::name)
                    .contains(kept)
                    .doesNotContain(stream);
            assertThat(relations()).isEmpty();
            assertThat(log.lines(stream)).isEmpty();
        }
    }

    /** Goal: a stream that is created anew under its name gets what is published from then on, and nothing of the former one. */
    @Test
    void delete_andCreateAgainWhileAPublisherRuns_theNewStreamGetsTheNextEvents() throws Exception {
        EventSql other = cluster.open(settings -> settings.publishTimeout(Duration.ofMinutes(10)));
        StreamSpec spec =
                StreamSpec.of(stream).withPartitions(2).withSegmentSize(100).asJson();
        try (CapturedLog log = CapturedLog.ofAppending()) {
            deleteAndCreateAgain(other, spec);
            assertThat(log.lines("ERROR")).isEmpty(); // no acknowledged event was lost
        }
    }

    private void deleteAndCreateAgain(EventSql other, StreamSpec spec) throws Exception {
        int functions = appendFunctions().size();
        for (int round = 0; round < 2; round++) {
            try (ExecutorService executor = Executors.newCachedThreadPool()) {
                List<Future<UnknownStreamException>> failing = List.of(eventSql, other).stream()
                        .map(by -> executor.submit(() -> publishUntilUnknown(by)))
                        .toList();
                await().atMost(DEADLINE)
                        .until(() -> eventSql.previewDeleteStream(stream).events() > 200);
                delete();
                for (Future<UnknownStreamException> failure : failing) {
                    failure.get(120, TimeUnit.SECONDS);
                }
            }
            assertThat(appendFunctions()).hasSize(functions - 1);
            eventSql.createStream(spec);
            publish(eventSql, stream, 30);
            publish(other, stream, 30);
            assertThat(eventSql.previewDeleteStream(stream).events()).isEqualTo(60);
            assertThat(appendFunctions()).hasSize(functions);
        }
    }

    private static List<String> appendFunctions() throws SQLException {
        return Sql.query(shard(), "SELECT proname FROM pg_proc WHERE proname ~ '^append_v2_'");
    }

    private UnknownStreamException publishUntilUnknown(EventSql by) {
        while (true) {
            try {
                publish(by, stream, 20);
            } catch (UnknownStreamException e) {
                return e;
            } catch (EventSqlException e) { // the batch that found out
                assertThat(e).hasRootCauseInstanceOf(UnknownStreamException.class);
            }
        }
    }

    @Test
    void delete_consumed_isRefused() throws SQLException {
        publish(eventSql, stream, 10);
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(ConsumerSpec.of(stream, "mailer"), handled::add)) {
            handled.awaitSize(10);
            assertThatThrownBy(this::delete)
                    .isInstanceOf(EventSqlException.class)
                    .hasMessageContaining(
                            "cannot be deleted while it is in use on shard0: it is consumed; close the members"
                                    + " of mailer");
        }
        assertThat(eventSql.previewDeleteStream(stream).events()).isEqualTo(10);
        assertThat(delete()).isEqualTo(10);
    }

    @Test
    void delete_eventsWaitInTheOutbox_isRefused() throws SQLException {
        try (BlockedRelays ignored = BlockedRelays.of(shard());
                Connection transaction = shard().getConnection()) {
            transaction.setAutoCommit(false);
            eventSql.outbox().publish(transaction, stream, Event.ofText("k", "{}"));
            transaction.commit();
            assertThatThrownBy(this::delete)
                    .isInstanceOf(EventSqlException.class)
                    .hasMessageContaining("events for it wait in the outbox");
        }
        await().atMost(DEADLINE)
                .until(() -> eventSql.previewDeleteStream(stream).events() == 1);
        await().atMost(DEADLINE)
                .until(() -> Sql.queryLong(shard(), "SELECT count(*) FROM eventsql.outbox_transfer") == 0);
        assertThat(delete()).isOne();
    }

    /** The other shard could not be reached after the call had begun. */
    @Test
    void delete_begunOnOneShardOnly_eventsOfItsOutboxAreRefusedAndOthersAreMoved() throws SQLException {
        String ofFirstShard = TestCluster.keysOfShard(0, 2, "k").findFirst().orElseThrow();
        Sql.query(shard(), "SELECT eventsql.begin_delete_stream_v1(?)", stream);
        try (Connection transaction = shard().getConnection()) {
            transaction.setAutoCommit(false);
            eventSql.outbox().publish(transaction, stream, Event.ofText(ofFirstShard, "{}"));
            eventSql.outbox().publish(transaction, kept, Event.ofText(ofFirstShard, "{}"));
            transaction.commit();
        }
        await().atMost(DEADLINE).until(() -> eventSql.previewDeleteStream(kept).events() == 1);
        assertThat(Sql.query(shard(), "SELECT error FROM eventsql.outbox_refused WHERE stream = ?", stream))
                .containsExactly("there is no stream " + stream);
        delete();
        assertThat(relations()).isEmpty();
    }

    @Test
    void delete_wrongConfirmation_isRejected() {
        publish(eventSql, stream, 1);
        for (String wrong : List.of(
                eventSql.previewClear(stream).confirmation(),
                eventSql.previewDeleteStream(kept).confirmation(),
                "")) {
            assertThatThrownBy(() -> eventSql.deleteStream(stream, wrong))
                    .isInstanceOf(InvalidInputException.class)
                    .hasMessageContaining("confirmation does not match stream " + stream);
        }
        assertThat(eventSql.previewDeleteStream(stream).events()).isOne();
    }

    /** Method: a transaction reads the stream until the call has failed, so that its tables cannot be dropped. */
    @Test
    void delete_readerPreventsIt_failsAndACompletingCallSucceeds() throws SQLException {
        publish(eventSql, stream, 300);
        String table = StreamSpec.of(stream).tableName();
        try (Connection reader = shard().getConnection()) {
            reader.setAutoCommit(false);
            Sql.query(reader, "SELECT count(*) FROM eventsql." + table);

            assertThatThrownBy(this::delete)
                    .isInstanceOf(EventSqlException.class)
                    .hasMessageContaining("could not be deleted on shard0; retry the call")
                    .hasMessageContaining("lock timeout");

            assertThat(eventSql.streams())
                    .extracting(StreamSpec::name)
                    .contains(kept)
                    .doesNotContain(stream);
            assertThatThrownBy(() -> publish(eventSql, stream, 1)).isInstanceOf(UnknownStreamException.class);
            assertThatThrownBy(() -> eventSql.createStream(StreamSpec.of(stream)))
                    .isInstanceOf(EventSqlException.class)
                    .hasMessageContaining(
                            "stream " + stream + " is being deleted, and not all of its tables are dropped yet");
            reader.rollback();
        }
        assertThat(eventSql.previewDeleteStream(stream).events()).isZero();
        delete();
        assertThat(relations()).isEmpty();
        eventSql.createStream(StreamSpec.of(stream).withPartitions(1));
    }

    /** Goal: the places in the server's lock table do not depend on the number of segments. */
    @Test
    void delete_manySegments_eachTransactionLocksFewTables() throws SQLException {
        for (int i = 0; i < 12; i++) { // ten at a time
            Sql.execute(
                    shard(),
                    "SELECT eventsql.ensure_segments_v1(NULL, stream_id, 0, 12000) FROM eventsql.stream"
                            + " WHERE name = '" + stream + "'");
        }
        assertThat(eventSql.previewDeleteStream(stream).consumers()).isEmpty();
        assertThat(relations()).hasSizeGreaterThan(100);
        Sql.query(shard(), "SELECT eventsql.begin_delete_stream_v1(?)", stream);
        int transactions = 0;
        boolean more = true;
        while (more) {
            transactions++;
            try (Connection connection = shard().getConnection()) {
                connection.setAutoCommit(false);
                more = Sql.query(connection, "SELECT eventsql.drop_deleted_stream_v1(?, 20)", stream)
                        .equals(List.of("t"));
                assertThat(Sql.query(connection, "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()"))
                        .singleElement()
                        .satisfies(locks -> assertThat(Integer.parseInt(locks)).isLessThan(300));
                connection.commit();
            }
        }
        assertThat(transactions).isGreaterThan(6);
        delete();
        assertThat(relations()).isEmpty();
    }

    /** Each takes a place in the lock table until the end of the transaction that drops it. */
    @Test
    void delete_manySegmentsWithAKeyIndex_readersOfKeysAreDroppedWithTheirTables() throws SQLException {
        String indexed = TestStreams.newName();
        StreamSpec spec =
                StreamSpec.of(indexed).withPartitions(1).withSegmentSize(1_000).withKeyTracking(KeyTracking.INDEX);
        eventSql.createStream(spec);
        Sql.execute(
                shard(),
                "SELECT eventsql.ensure_segments_v1(NULL, stream_id, 0, 12000) FROM eventsql.stream" + " WHERE name = '"
                        + indexed + "'"); // ten at a time
        String readers = "SELECT count(*) FROM pg_proc p WHERE p.prorettype = 'eventsql.key_event[]'::regtype"
                + " AND starts_with(p.proname, '" + spec.tableName() + "__')";
        assertThat(Sql.queryLong(shard(), readers)).isGreaterThan(10);
        Sql.query(shard(), "SELECT eventsql.begin_delete_stream_v1(?)", indexed);
        while (Sql.query(shard(), "SELECT eventsql.drop_deleted_stream_v1(?, 5)", indexed)
                .equals(List.of("t"))) {
            assertThat(Sql.queryLong(
                            shard(), readers + " AND to_regclass('eventsql.' || quote_ident(p.proname)) IS NULL"))
                    .isZero();
        }
        assertThat(Sql.queryLong(shard(), readers)).isZero();
        eventSql.deleteStream(indexed, eventSql.previewDeleteStream(indexed).confirmation());
    }

    /** A transaction that deletes the versions of all keys would take minutes, and fail at each attempt. */
    @Test
    void delete_manyCountedKeys_theirVersionsAreDeletedInParts() throws SQLException {
        String counted = TestStreams.newName();
        eventSql.createStream(StreamSpec.of(counted).withPartitions(1).withKeyTracking(KeyTracking.VERSIONS));
        Sql.execute(
                shard(),
                "INSERT INTO eventsql.key_version (stream_id, partition, key, version)"
                        + " SELECT s.stream_id, 0, 'k' || g, 1 FROM eventsql.stream s, generate_series(1, 201000) g"
                        + " WHERE s.name = '" + counted + "'");
        Sql.query(shard(), "SELECT eventsql.begin_delete_stream_v1(?)", counted);
        assertThat(Sql.queryLong(shard(), "SELECT count(*) FROM eventsql.key_version"))
                .isEqualTo(201_000);
        assertThat(Sql.query(shard(), "SELECT eventsql.drop_deleted_stream_v1(?, 20)", counted))
                .containsExactly("t");
        assertThat(Sql.queryLong(shard(), "SELECT count(*) FROM eventsql.key_version"))
                .isBetween(1L, 100_000L);
        eventSql.deleteStream(counted, eventSql.previewDeleteStream(counted).confirmation());
        assertThat(cluster.sum("SELECT count(*) FROM eventsql.key_version")).isZero();
        assertThat(cluster.sum("SELECT count(*) FROM eventsql.deleted_stream WHERE name = '" + counted + "'"))
                .isZero();
    }
}
