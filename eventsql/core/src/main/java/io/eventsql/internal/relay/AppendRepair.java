package io.eventsql.internal.relay;

import io.eventsql.StreamSpec;
import io.eventsql.internal.append.PartitionGroup;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * Removes what prevents an append to a shard and lies outside the events: a missing segment, ids that belong to another
 * incarnation of the shard's database, a stream that was dropped, created anew, or has grown. Used by one thread.
 */
final class AppendRepair {
    private final Shard shard;
    private final SegmentKeeper segments;
    private final KnownStreams streams;

    /** @param streams what the caller knows of the streams of the shard */
    AppendRepair(Shard shard, SegmentKeeper segments, KnownStreams streams) {
        this.shard = shard;
        this.segments = segments;
        this.streams = streams;
    }

    /** What a component of the relay knows of the streams of a shard. */
    interface KnownStreams {
        /**
         * Reads streams again after the shard has rejected an append to them.
         *
         * @return whether a stream has changed, so that the append can be repeated
         */
        boolean refresh(Set<StreamSpec> rejected) throws SQLException;

        /** Forgets all streams: the shard's database has another incarnation. */
        void forgetAll();
    }

    /**
     * Removes the cause of a failed append, if it is one of these.
     *
     * @param incarnation that of the shard's database when the ids of the streams were read
     * @param groups the events of the append
     * @return whether to repeat the append immediately
     * @throws SQLException if the cause could not be removed
     */
    boolean repair(SQLException failure, String incarnation, List<PartitionGroup> groups) throws SQLException {
        if (SqlErrors.isOtherIncarnation(failure)) {
            return adoptIncarnation(incarnation);
        }
        return SqlErrors.isMissingSegment(failure) ? addSegments(incarnation, groups) : refreshStreams(failure, groups);
    }

    private boolean adoptIncarnation(String rejected) throws SQLException {
        shard.recheckIncarnation(rejected);
        streams.forgetAll();
        return !shard.incarnation().equals(rejected);
    }

    private boolean addSegments(String incarnation, List<PartitionGroup> groups) throws SQLException {
        boolean added = false;
        try {
            for (PartitionGroup group : groups) {
                added |= segments.ensureRoom(
                        shard, incarnation, group.stream(), group.streamId(), group.partition(), group.size());
            }
        } catch (SQLException e) {
            if (SqlErrors.isOtherIncarnation(e)) {
                return adoptIncarnation(incarnation);
            }
            if (SqlErrors.state(e).equals(SqlErrors.NO_PARTITION)) {
                return refreshStreams(e, groups);
            }
            throw e;
        }
        return added;
    }

    private boolean refreshStreams(SQLException failure, List<PartitionGroup> groups) throws SQLException {
        return switch (SqlErrors.state(failure)) {
            case SqlErrors.NO_PARTITION, SqlErrors.OTHER_STREAM, SqlErrors.UNDEFINED_TABLE, SqlErrors.MAP_VERSION -> {
                Set<StreamSpec> rejected = new LinkedHashSet<>();
                groups.forEach(group -> rejected.add(group.stream()));
                yield streams.refresh(rejected);
            }
            default -> false;
        };
    }
}
