package io.eventsql.runner.limits;

import io.eventsql.EventSql;
import io.eventsql.ShardInfo;
import io.eventsql.StreamSpec;
import io.eventsql.runner.load.LoadClock;
import java.sql.Connection;
import java.sql.SQLException;

/**
 * How long binary COPY takes for so many events on one connection, in transactions of {@value
 * CopyVariant#EVENTS_PER_COMMIT} events: what no way to publish can beat by much.
 *
 * @param events how many
 * @param durationMs from the first to the last commit, in milliseconds
 */
public record CopyTime(int events, double durationMs) {

    /**
     * Measures it on the first shard, in a new stream that stays.
     *
     * @param run part of the stream's name, and of the events
     * @param events at least 1
     * @throws SQLException if the database refuses something
     */
    public static CopyTime measure(EventSql eventSql, String run, int events, LoadClock clock) throws SQLException {
        String stream = "copy_" + run;
        // COPY makes no segments: the first one holds all.
        eventSql.createStream(StreamSpec.of(stream).withPartitions(1).withSegmentSize(StreamSpec.SEGMENT_SIZE_MAX));
        ShardInfo shard = eventSql.shards().getFirst();
        SegmentCopy copy = new SegmentCopy(run, new StreamTables(shard.dataSource(), stream), 0);
        try (Connection connection = shard.dataSource().getConnection()) {
            long start = clock.nanos();
            for (int copied = 0; copied < events; copied += CopyVariant.EVENTS_PER_COMMIT) {
                copy.copy(connection, Math.min(CopyVariant.EVENTS_PER_COMMIT, events - copied));
            }
            return new CopyTime(events, (clock.nanos() - start) / 1e6);
        }
    }
}
