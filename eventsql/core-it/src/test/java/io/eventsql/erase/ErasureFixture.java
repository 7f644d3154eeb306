package io.eventsql.erase;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.Storage;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.DatabaseFiles;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;

/**
 * Base class: clusters that the tests of a class share, a stream for each test with segments of 100 events, and values that name
 * their stream and key.
 */
@Timeout(180)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class ErasureFixture {
    private final Map<Integer, TestCluster> clusters = new HashMap<>();
    private final Map<Integer, EventSql> instances = new HashMap<>();

    String stream = "";
    TestCluster cluster;
    EventSql eventSql;

    /** Creates a stream in the cluster with this number of shards. */
    void open(int shards) {
        cluster = clusters.computeIfAbsent(shards, TestCluster::ofShards);
        eventSql = instances.computeIfAbsent(shards, n -> cluster.open());
        stream = TestStreams.newName();
        createStream(stream);
    }

    void createDeadLetterStream() {
        createStream(stream + "_dead");
    }

    private void createStream(String name) {
        eventSql.createStream(
                StreamSpec.of(name).withPartitions(2).withSegmentSize(100).withStorage(storage()));
    }

    /** Returns how the streams store their events. */
    Storage storage() {
        return TestStreams.areBlocks() ? Storage.BLOCKS : Storage.ROWS;
    }

    @AfterAll
    void close() {
        clusters.values().forEach(TestCluster::close);
    }

    DataSource database() {
        return cluster.dataSources().getFirst();
    }

    /** Returns a value that begins with the mark of its key and cannot be compressed. */
    byte[] value(String key, Random random, int bytes) {
        byte[] filler = new byte[bytes / 2];
        random.nextBytes(filler);
        return (mark(key) + HexFormat.of().formatHex(filler)).getBytes(UTF_8);
    }

    String mark(String key) {
        return "secret-of-" + stream + "-" + key + "-";
    }

    /** Returns the header {@code name} of a key's events. */
    String name(String key) {
        return "name-of-" + stream + "-" + key + "-";
    }

    Event event(String key, Random random) {
        return Event.of(key, value(key, random, random.nextInt(10) == 0 ? 5_000 : 200))
                .withHeader("name", name(key))
                .withHeader("type", "changed");
    }

    /** Publishes events of the keys k0 to k(keys-1). */
    void publish(int events, int keys, Random random) {
        for (int from = 0; from < events; from += 50) {
            List<Event> batch = new ArrayList<>();
            for (int i = from; i < Math.min(events, from + 50); i++) {
                batch.add(event("k" + i % keys, random));
            }
            eventSql.publisher().publishAll(stream, batch);
        }
    }

    List<StoredEvent> readAll(String name) {
        List<StoredEvent> events = new ArrayList<>();
        for (int shard = 0; shard < cluster.shards(); shard++) {
            for (int partition = 0; partition < 2; partition++) {
                long next = 0;
                List<StoredEvent> page;
                do {
                    page = eventSql.read(new EventPosition(name, shard, partition, next), 1_000);
                    events.addAll(page);
                    next += page.size();
                } while (!page.isEmpty());
            }
        }
        return events;
    }

    void assertNoFileContains(String text) throws SQLException {
        for (DataSource database : cluster.dataSources()) {
            assertThat(DatabaseFiles.containing(database, text))
                    .as("files with %s", text)
                    .isEmpty();
        }
    }
}
