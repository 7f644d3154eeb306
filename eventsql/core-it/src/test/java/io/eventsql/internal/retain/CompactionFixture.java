package io.eventsql.internal.retain;

import static org.awaitility.Awaitility.await;

import io.eventsql.Compaction;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.Storage;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import javax.sql.DataSource;

/** Streams of one shard that are compacted step by step. */
final class CompactionFixture implements AutoCloseable {

    final TestCluster cluster = TestCluster.ofShards(1);
    final DataSource database = cluster.dataSources().getFirst();
    final EventSql eventSql = cluster.open();
    private final UUID producer = UUID.randomUUID();
    private final AtomicLong batches = new AtomicLong();

    static StreamSpec newStream(Storage storage) {
        return StreamSpec.of(TestStreams.newName())
                .withPartitions(1)
                .withSegmentSize(100)
                .withStorage(storage)
                .withCompaction(Compaction.DEFAULT);
    }

    /** Publishes an event for each key; {@code null}: without one. The text ends with the event's number in the list. */
    List<EventPosition> publish(String stream, List<String> keys) {
        List<Event> events = new ArrayList<>();
        for (String key : keys) {
            String text = "%050d".formatted(events.size());
            events.add(key == null ? Event.ofText(text) : Event.ofText(key, text));
        }
        return eventSql.publisher().publishAll(stream, events);
    }

    List<EventPosition> publish(String stream, String... keys) {
        return publish(stream, Arrays.asList(keys));
    }

    /** Appends a tombstone; returns its offset. */
    long appendTombstone(String stream, int partition, String key) throws SQLException {
        long number = batches.incrementAndGet();
        while (true) {
            try {
                return Long.parseLong(Sql.query(database, """
                        SELECT (eventsql.append_v1(?, ?, p.map_version, NULL, 0, ARRAY[s.name], ARRAY[s.stream_id],
                            ARRAY[p.partition], ARRAY[1], ARRAY[1], ARRAY[0], ARRAY[?], ARRAY[NULL::bytea],
                            ARRAY[NULL::text]))[1]
                        FROM eventsql.stream s JOIN eventsql.stream_partition p USING (stream_id)
                        WHERE s.name = ? AND p.partition = ?""", producer, number, key, stream, partition)
                        .getFirst());
            } catch (SQLException e) {
                if (!"23514".equals(e.getSQLState())) {
                    throw e;
                }
                Sql.query(
                        database,
                        "SELECT added FROM eventsql.ensure_segments_v1(NULL, ?, ?, 1000)",
                        streamId(stream),
                        partition);
            }
        }
    }

    /** Ends the active segment of partition 0 by filling it with events without a key. */
    void endSegment(StreamSpec stream) throws SQLException {
        long missing = stream.segmentSize() - head(stream.name()) % stream.segmentSize();
        publish(stream.name(), new String[(int) missing]);
    }

    private String step() throws SQLException {
        return Sql.query(database, "SELECT eventsql.compact_v1()").getFirst();
    }

    /** Compacts what is to be compacted now; the instance's own background rounds may take steps of it. */
    void compact() {
        for (int round = 0; round < 2; round++) { // the first one may have been in progress
            await().atMost(Duration.ofMinutes(1))
                    .pollDelay(Duration.ZERO)
                    .pollInterval(Duration.ofMillis(1))
                    .until(this::step, step -> step.equals("finished") || step.equals("idle"));
        }
    }

    /** Compacts what is to be compacted now, also what a lock has postponed, such as one of autovacuum. */
    void compactAll() {
        compact();
        await().atMost(Duration.ofMinutes(1)).pollDelay(Duration.ZERO).until(() -> {
            if (!endPostponement()) {
                return true;
            }
            compact();
            return false;
        });
    }

    /** Makes due what a lock or an older snapshot has postponed; returns whether there was any. */
    boolean endPostponement() throws SQLException {
        return !Sql.query(
                        database,
                        "UPDATE eventsql.compaction_progress SET retry_at = clock_timestamp()"
                                + " WHERE retry_at > clock_timestamp() RETURNING partition")
                .isEmpty();
    }

    /** Ends the compaction of all streams: what each test does that shares the database with others of its class. */
    void stopCompacting() {
        eventSql.streams().stream()
                .filter(stream -> stream.compaction() != null)
                .forEach(stream -> eventSql.alterStream(stream.withCompaction(null)));
    }

    /** Makes everything older, as if the time had passed. */
    void age(String stream, Duration time) throws SQLException {
        String past = " - interval '" + time.toMillis() + " ms'";
        String ofStream = " WHERE stream_id = " + streamId(stream);
        Sql.execute(
                database,
                "UPDATE " + table(stream) + " SET published_at = published_at" + past,
                "UPDATE eventsql.segment SET last_published_at = last_published_at" + past + ofStream,
                "UPDATE eventsql.producer_batch SET published_at = published_at" + past + ofStream,
                "UPDATE eventsql.compaction_progress SET compacted_at = compacted_at" + past
                        + ", oldest_tombstone_at = oldest_tombstone_at" + past + ofStream,
                "UPDATE eventsql.consumer SET created_at = created_at" + past + ofStream,
                "UPDATE eventsql.consumer_offset o SET committed_at = committed_at" + past
                        + " FROM eventsql.consumer c WHERE c.consumer_id = o.consumer_id AND c.stream_id = "
                        + streamId(stream));
    }

    /** Returns the table of a stream, which has a row for each event or block. */
    String table(String stream) throws SQLException {
        try (Connection connection = database.getConnection()) {
            return TestStreams.table(connection, stream);
        }
    }

    /** Sets what a consumer has handled of partition 0. */
    void commit(String stream, String consumer, long next) throws SQLException {
        Sql.execute(
                database,
                "INSERT INTO eventsql.consumer (stream_id, name) VALUES (" + streamId(stream) + ", '" + consumer
                        + "') ON CONFLICT DO NOTHING",
                "INSERT INTO eventsql.consumer_offset SELECT c.consumer_id, 0"
                        + ", coalesce((SELECT max(o.commit_number) + 1 FROM eventsql.consumer_offset o WHERE o.consumer_id ="
                        + " c.consumer_id AND o.partition = 0), 0), " + next
                        + ", 0, 0, clock_timestamp() FROM eventsql.consumer c WHERE c.name = '" + consumer
                        + "' AND c.stream_id = " + streamId(stream));
    }

    int streamId(String stream) throws SQLException {
        return Integer.parseInt(Sql.query(database, "SELECT stream_id FROM eventsql.stream WHERE name = ?", stream)
                .getFirst());
    }

    long head(String stream) throws SQLException {
        return Long.parseLong(Sql.query(
                        database,
                        "SELECT next_offset FROM eventsql.partition_head WHERE stream = ? AND partition = 0",
                        stream)
                .getFirst());
    }

    /** Returns the offsets of the events that are stored, in their order. */
    List<Long> offsets(String stream, int partition) throws SQLException {
        return Sql.query(
                        database,
                        "SELECT event_offset FROM eventsql.events_" + stream
                                + " WHERE partition = ? ORDER BY event_offset",
                        partition)
                .stream()
                .map(Long::valueOf)
                .toList();
    }

    /** Returns the segments as {@code first-end state}. */
    List<String> segments(String stream) throws SQLException {
        return Sql.query(
                database,
                "SELECT g.first_offset || '-' || g.end_offset || ' ' || g.state FROM eventsql.segment g"
                        + " JOIN eventsql.stream s USING (stream_id) WHERE s.name = ? ORDER BY g.partition, g.first_offset",
                stream);
    }

    /** Reads a partition from an offset on, without a consumer. */
    List<StoredEvent> readAll(String stream, int partition, long from, int pageEvents) {
        List<StoredEvent> events = new ArrayList<>();
        long next = from;
        while (true) {
            List<StoredEvent> page = eventSql.read(new EventPosition(stream, 0, partition, next), pageEvents);
            if (page.isEmpty()) {
                return events;
            }
            events.addAll(page);
            next = page.getLast().offset() + 1;
        }
    }

    @Override
    public void close() {
        cluster.close();
    }
}
