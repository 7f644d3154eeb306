package io.eventsql.internal.append;

import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.MapFence;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.UUID;

/** Appends the events of one batch to a shard, in the form that the storage of their streams takes. Thread-safe. */
public final class GroupAppend {
    private GroupAppend() {}

    /**
     * Appends the groups, which are in the lock order, in the connection's transaction or in one of its own: see {@link
     * io.eventsql.internal.sql.AppendStatement#execute}.
     *
     * @param incarnation that of the database when the ids of the streams were read
     * @return the offset of the first event of each group
     */
    public static long[] execute(
            Shard shard,
            Connection connection,
            UUID producer,
            long number,
            String incarnation,
            List<PartitionGroup> groups)
            throws SQLException {
        MapFence maps = MapFence.of(PartitionGroup.mapVersions(groups));
        return PartitionGroup.areBlocks(groups)
                ? shard.tables()
                        .appendBlocks()
                        .execute(connection, producer, number, maps, incarnation, PartitionGroup.toBlocks(groups))
                : shard.tables()
                        .append()
                        .execute(connection, producer, number, maps, incarnation, PartitionGroup.toRows(groups));
    }
}
