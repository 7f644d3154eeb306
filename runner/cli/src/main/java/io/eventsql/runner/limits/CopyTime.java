package io.eventsql.runner.limits;

import io.eventsql.EventSql;
import io.eventsql.ShardInfo;
import io.eventsql.StreamSpec;
import io.eventsql.runner.load.LoadClock;
import java.sql.Connection;
import java.sql.SQLException;

/**
 * The duration of a binary COPY of a number of events on one connection, in transactions of {@value
 * CopyVariant#EVENTS_PER_COMMIT} events. It is a practical lower bound for publishing.
 *
 * @param events the number of events
 * @param durationMs the time from the start to the last commit, in milliseconds
 */
public record CopyTime(int events, double durationMs) {

    /**
     * Measures it on the first shard, in a new stream that is not removed.
     *
     * @param run the run's id, part of the stream's name and of the events
     * @param events at least 1
     * @throws SQLException if a statement fails
     */
    public static CopyTime measure(EventSql eventSql, String run, int events, LoadClock clock) throws SQLException {
        String stream = "copy_" + run;
        // COPY creates no segments, so the first one must hold all events.
        eventSql.createStream(StreamSpec.of(stream).withPartitions(1).withSegmentSize(StreamSpec.SEGMENT_SIZE_MAX));
        ShardInfo shard = eventSql.shards().getFirst();
        SegmentCopy copy = new SegmentCopy(run, new StreamLog(shard.dataSource(), stream), 0);
        try (Connection connection = shard.dataSource().getConnection()) {
            long start = clock.nanos();
            for (int copied = 0; copied < events; copied += CopyVariant.EVENTS_PER_COMMIT) {
                copy.copy(connection, Math.min(CopyVariant.EVENTS_PER_COMMIT, events - copied));
            }
            return new CopyTime(events, (clock.nanos() - start) / 1e6);
        }
    }
}
