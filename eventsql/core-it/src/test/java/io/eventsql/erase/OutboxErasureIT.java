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
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
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
        String tombstone = " (stream, key, value, headers, %s) VALUES ('" + stream + "', 'k1', NULL, '{\"name\": \"x\"}', %s)";
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

    /** A sender has read the page; then its values are erased; then it sends and removes the page. */
    @Test
    void erase_whileEventsAreRelayed_leavesNoValueThatWasPublishedBefore() throws Exception {
        Random random = Seeds.random("erase_whileEventsAreRelayed");
        try (ExecutorService threads = Executors.newSingleThreadExecutor()) {
            for (int round = 0; round < 3; round++) {
                String key = "k" + round;
                publishInTransaction(events(key, 100, random));
                Future<?> publishing = threads.submit(() -> {
                    for (int batch = 0; batch < 30; batch++) {
                        publishInTransaction(events("other", 20, new Random(batch)));
                    }
                    return null;
                });
                Erasure erasure = process.erase(
                        ErasureSpec.of(stream, key).withStepEvents(7).withPause(Duration.ofMillis(1)));
                publishing.get();
                assertThat(erasure.isErased()).as("%s", erasure).isTrue();
                erasure = process.resumeErasure(erasure.id());
                assertThat(erasure.isDone()).as("%s", erasure).isTrue();
                assertThat(readAll(stream)).filteredOn(e -> key.equals(e.key())).allMatch(StoredEvent::isErased);
                assertNowhere(mark(key));
            }
        }
    }

    private List<Event> events(String key, int count, Random random) {
        List<Event> events = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            events.add(event(key, random));
        }
        return events;
    }
}
