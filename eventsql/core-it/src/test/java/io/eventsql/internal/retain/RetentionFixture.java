package io.eventsql.internal.retain;

import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import javax.sql.DataSource;

/** A stream with segments of 100 events on one shard, whose retention is run step by step. */
final class RetentionFixture implements AutoCloseable {

    final TestCluster cluster = TestCluster.ofShards(1);
    final DataSource database = cluster.dataSources().getFirst();
    final EventSql eventSql = cluster.open();

    static String newStream() {
        return TestStreams.newName();
    }

    /** Publishes events to partition 0 of a stream with one partition. */
    List<EventPosition> publish(String stream, int events) {
        return eventSql.publisher()
                .publishAll(
                        stream,
                        IntStream.range(0, events)
                                .mapToObj(i -> Event.ofText("k", "v"))
                                .toList());
    }

    /** Runs a whole pass; the instance's own background passes may take steps of it. */
    void pass() {
        await().until(
                        () -> Sql.query(database, "SELECT eventsql.expire_v1()").getFirst(),
                        step -> step.equals("finished") || step.equals("idle"));
    }

    /** Makes everything older, as if the time had passed. */
    void age(String stream, Duration time) throws SQLException {
        String past = " - interval '" + time.toMillis() + " ms'";
        String ofStream = " WHERE stream_id = " + streamId(stream);
        Sql.execute(
                database,
                "UPDATE eventsql.events_" + stream + " SET published_at = published_at" + past,
                "UPDATE eventsql.segment SET last_published_at = last_published_at" + past + ofStream,
                "UPDATE eventsql.producer_batch SET published_at = published_at" + past + ofStream,
                "UPDATE eventsql.consumer SET created_at = created_at" + past + ofStream,
                "UPDATE eventsql.consumer_offset o SET committed_at = committed_at" + past
                        + " FROM eventsql.consumer c WHERE c.consumer_id = o.consumer_id AND c.stream_id = "
                        + streamId(stream));
    }

    int streamId(String stream) throws SQLException {
        return Integer.parseInt(Sql.query(database, "SELECT stream_id FROM eventsql.stream WHERE name = ?", stream)
                .getFirst());
    }

    long logStart(String stream) throws SQLException {
        return Long.parseLong(Sql.query(
                        database,
                        "SELECT log_start FROM eventsql.partition_head WHERE stream = ? AND partition = 0",
                        stream)
                .getFirst());
    }

    /** Returns the segments as {@code first-end state}. */
    List<String> segments(String stream) throws SQLException {
        return Sql.query(
                database,
                "SELECT g.first_offset || '-' || g.end_offset || ' ' || g.state FROM eventsql.segment g"
                        + " JOIN eventsql.stream s USING (stream_id) WHERE s.name = ? ORDER BY g.partition, g.first_offset",
                stream);
    }

    /** Sets what a consumer has handled of a partition. */
    void commit(String stream, String consumer, int partition, long next) throws SQLException {
        Sql.execute(
                database,
                "INSERT INTO eventsql.consumer (stream_id, name) VALUES (" + streamId(stream) + ", '" + consumer
                        + "') ON CONFLICT DO NOTHING",
                "INSERT INTO eventsql.consumer_offset SELECT c.consumer_id, " + partition
                        + ", coalesce((SELECT max(o.commit_number) + 1 FROM eventsql.consumer_offset o WHERE o.consumer_id ="
                        + " c.consumer_id AND o.partition = " + partition + "), 0), " + next
                        + ", 0, 0, clock_timestamp() FROM eventsql.consumer c WHERE c.name = '" + consumer
                        + "' AND c.stream_id = " + streamId(stream));
    }

    @Override
    public void close() {
        cluster.close();
    }
}
