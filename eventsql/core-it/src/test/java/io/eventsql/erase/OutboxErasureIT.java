package io.eventsql.erase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Erasure;
import io.eventsql.ErasureSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.StoredEvent;
import io.eventsql.fixture.DatabaseFiles;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Events that wait in a standalone outbox, and those that it has sent or refused. */
class OutboxErasureIT extends ErasureFixture {
    private HikariDataSource application;
    private EventSql process;

    @BeforeEach
    void openOutbox() {
        open(1);
        application = TestCluster.pool(TestCluster.newDatabase());
        process = EventSql.builder(cluster.dataSources()).outbox(application).build();
    }

    @AfterEach
    void closeOutbox() {
        process.close();
        application.close();
    }

    private void publishInTransaction(List<Event> events) throws SQLException {
        try (Connection connection = application.getConnection()) {
            connection.setAutoCommit(false);
            process.outbox().publishAll(connection, stream, events);
            connection.commit();
        }
        process.outbox().committed();
    }

    private void assertNowhere(String text) throws SQLException {
        assertNoFileContains(text);
        assertThat(DatabaseFiles.containing(application, text)).isEmpty();
    }

    private long count(DataSource database, String table) throws SQLException {
        return Sql.queryLong(database, "SELECT count(*) FROM eventsql." + table);
    }

    @Test
    void erase_eventsWaiting_areSentErasedOrNotAtAll() throws SQLException {
        Random random = Seeds.random("erase_eventsWaiting");
        process.close(); // nothing is relayed
        Sql.execute(
                application,
                insert("outbox", "ring, routing_hash", "0, 0", "k1", random),
                insert("outbox", "ring, routing_hash", "0, 0", "k2", random),
                insert("outbox_refused", "written_at, error", "now(), 'refused'", "k1", random),
                insert("outbox_refused", "written_at, error", "now(), 'refused'", "k2", random),
                insert("outbox_transfer", TRANSFER, TRANSFER_VALUES, "k1", random),
                insert("outbox_transfer", TRANSFER, TRANSFER_VALUES, "k2", random));
        process = EventSql.builder(cluster.dataSources()).outbox(application).build();

        Erasure erasure = process.erase(stream, "k1");

        assertThat(erasure.isDone()).as("%s", erasure).isTrue();
        await().untilAsserted(
                        () -> assertThat(count(application, "outbox_transfer")).isZero());
        await().untilAsserted(() -> assertThat(count(application, "outbox")).isZero());
        assertThat(Sql.query(application, "SELECT key FROM eventsql.outbox_refused"))
                .containsExactly("k2");
        await().untilAsserted(() -> assertThat(readAll(stream)).hasSizeGreaterThanOrEqualTo(3));
        assertThat(readAll(stream)).allMatch(e -> e.isErased() == "k1".equals(e.key()));
        assertNowhere(mark("k1"));
    }

    /** A tombstone has no value to erase, and consumers still need it: it arrives, without its headers. */
    @Test
    void erase_tombstonesWaiting_areSentAsTombstones() throws SQLException {
        process.close(); // nothing is relayed
        String tombstone =
                " (stream, key, value, headers, %s) VALUES ('" + stream + "', 'k1', NULL, '{\"name\": \"x\"}', %s)";
        Sql.execute(
                application,
                "INSERT INTO eventsql.outbox" + tombstone.formatted("ring, routing_hash", "0, 0"),
                "INSERT INTO eventsql.outbox_refused" + tombstone.formatted("written_at, error", "now(), 'refused'"),
                "INSERT INTO eventsql.outbox_transfer" + tombstone.formatted(TRANSFER, TRANSFER_VALUES));
        process = EventSql.builder(cluster.dataSources()).outbox(application).build();

        Erasure erasure = process.erase(ErasureSpec.of(stream, "k1").withHeaders("name"));

        assertThat(erasure.isDone()).as("%s", erasure).isTrue();
        assertThat(Sql.queryLong(application, "SELECT eventsql.retry_refused_events()"))
                .isEqualTo(1);
        process.outbox().committed();
        await().untilAsserted(() -> assertThat(readAll(stream)).hasSize(3));
        assertThat(readAll(stream))
                .allMatch(StoredEvent::isTombstone)
                .allMatch(event -> event.headers().getOrDefault("name", "").isEmpty());
    }

    private static final String TRANSFER = "shard, producer_id, partition, written_at";
    private static final String TRANSFER_VALUES =
            "0, (SELECT producer_id FROM eventsql.outbox_relay), 0, now() - interval '1 s'";

    private String insert(String table, String columns, String values, String key, Random random) {
        return "INSERT INTO eventsql." + table + " (stream, key, value, " + columns + ") VALUES ('" + stream + "', '"
                + key + "', convert_to('" + new String(value(key, random, 300), java.nio.charset.StandardCharsets.UTF_8)
                + "', 'UTF8'), " + values + ")";
    }

    /**
     * Goal: an erasure ends although transactions publish without a pause, and nothing that was published before is left.
     * Method: small steps, so that the relay moves events of the key between them. The transactions are no faster than the
     * relay, which would otherwise send the erased events after an ever longer backlog.
     */
    @Test
    void erase_whileEventsAreRelayed_endsAndLeavesNoValueThatWasPublishedBefore() throws Exception {
        Random random = Seeds.random("erase_whileEventsAreRelayed");
        AtomicBoolean ended = new AtomicBoolean();
        try (ExecutorService threads = Executors.newSingleThreadExecutor()) {
            Future<Integer> publishing = threads.submit(() -> {
                int batches = 0;
                for (; !ended.get(); batches++) {
                    publishInTransaction(events("other", 20, new Random(batches)));
                    while (!ended.get() && count(application, "outbox_transfer") > 200) {
                        Thread.onSpinWait(); // the query is pause enough
                    }
                }
                return batches;
            });
            List<String> keys = List.of("k0", "k1");
            try {
                for (String key : keys) {
                    publishInTransaction(events(key, 60, random));
                    Erasure erasure = process.erase(
                            ErasureSpec.of(stream, key).withStepEvents(30).withPause(Duration.ZERO));
                    assertThat(erasure.isDone()).as("%s", erasure).isTrue();
                }
            } finally {
                ended.set(true);
            }
            assertThat(publishing.get()).isPositive();
            for (String key : keys) {
                assertThat(readAll(stream)).filteredOn(e -> key.equals(e.key())).allMatch(StoredEvent::isErased);
                assertNowhere(mark(key));
            }
        }
    }

    /** Without a look for what is left, the erasure ended the phase, because none of the rows that it had chosen was left. */
    @Test
    void eraseStep_relayTakesTheChosenEvents_choosesOthers() throws Exception {
        Random random = Seeds.random("eraseStep_relayTakes");
        process.close(); // nothing is relayed
        for (int i = 0; i < 20; i++) {
            Sql.execute(application, insert("outbox", "ring, routing_hash", "0, 0", "k1", random));
        }
        UUID id = begin("k1");
        try (ExecutorService threads = Executors.newSingleThreadExecutor();
                Connection relay = application.getConnection()) {
            relay.setAutoCommit(false);
            Sql.query(
                    relay,
                    "DELETE FROM eventsql.outbox WHERE id <= (SELECT min(id) + 9 FROM eventsql.outbox) RETURNING id");
            Future<String> phase = threads.submit(() -> step(id, 10));
            awaitLockWait("erase_outbox_step_v1");
            relay.commit();
            assertThat(phase.get()).isEqualTo("outbox");
        }
        assertThat(step(id, 10)).isEqualTo("transfer");
        assertThat(count(application, "outbox")).isZero();
    }

    /** A snapshot from before the table was truncated and filled again sees no event. */
    @Test
    void eraseStep_relayCompactsTheTransferTable_erasesItsEvents() throws Exception {
        Random random = Seeds.random("eraseStep_relayCompacts");
        process.close(); // nothing is relayed
        Sql.execute(application, insert("outbox_transfer", TRANSFER, TRANSFER_VALUES, "k1", random));
        UUID id = begin("k1");
        assertThat(step(id, 10)).isEqualTo("transfer");
        try (ExecutorService threads = Executors.newSingleThreadExecutor();
                Connection relay = application.getConnection()) {
            relay.setAutoCommit(false);
            Sql.query(relay, "SELECT eventsql.compact_transfer_v1(1000, 1000000)");
            Future<String> phase = threads.submit(() -> step(id, 10));
            awaitLockWait("erase_outbox_step_v1");
            relay.commit();
            phase.get();
        }
        assertThat(Sql.query(application, "SELECT octet_length(value) FROM eventsql.outbox_transfer"))
                .containsExactly("0");
    }

    /** Begins an erasure that only its outbox knows, as that of a process which dies then. */
    private UUID begin(String key) throws SQLException {
        UUID id = UUID.randomUUID();
        Sql.query(application, "SELECT eventsql.begin_outbox_erasure_v1(?, ?, ?)", id, stream, key);
        return id;
    }

    private String step(UUID id, int events) throws SQLException {
        return Sql.query(application, "SELECT phase FROM eventsql.erase_outbox_step_v1(?, ?)", id, events)
                .getFirst();
    }

    private void awaitLockWait(String statement) {
        await().untilAsserted(() -> assertThat(Sql.query(
                        application,
                        "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE ?",
                        "%" + statement + "%"))
                .isNotEmpty());
    }

    private List<Event> events(String key, int count, Random random) {
        List<Event> events = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            events.add(event(key, random));
        }
        return events;
    }
}
