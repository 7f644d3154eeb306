package io.eventsql.internal.sql;

import java.sql.Connection;
import org.jspecify.annotations.Nullable;

/** The functions that add partitions to a stream, give it another map, and remove partitions that are not in use yet. */
public final class GrowthFunctions {
    // Indexes: the primary keys. Takes an advisory lock of the stream, and locks the rows of its consumers.
    private static final String ADD = "SELECT eventsql.add_partitions_v1(?, ?, false)";

    // Indexes: the primary keys. Takes an advisory lock of the stream, locks the rows of its consumers, and its view.
    private static final String PREPARE = "SELECT eventsql.prepare_growth_v1(?, ?)";

    // Indexes: the primary keys, producer_batch_head. Locks the row of shard, and those of all partitions of the
    // stream.
    private static final String GROW = "SELECT eventsql.grow_stream_v2(?, ?, ?::smallint[], ?::smallint[])";

    // Indexes: the primary keys. Locks the table of the stream, without waiting for it.
    private static final String REMOVE = "SELECT eventsql.remove_partition_v1(?)";

    private final SqlSchema schema;

    public GrowthFunctions(SqlSchema schema) {
        this.schema = schema;
    }

    /**
     * Adds partitions until the stream has as many, in the caller's transaction, which get events only from those who name them.
     * Their tables follow: {@link StreamTable#createPartitions}.
     */
    public void addPartitions(Connection connection, int streamId, int partitions) {
        Jooq.using(connection).fetch(schema.sql(ADD), streamId, partitions);
    }

    /** Adds partitions as {@link #addPartitions} does, which no consumer may handle before {@link #grow}. */
    public void prepare(Connection connection, int streamId, int partitions) {
        Jooq.using(connection).fetch(schema.sql(PREPARE), streamId, partitions);
    }

    /**
     * Gives a stream the next map, in the caller's transaction.
     *
     * @param formerVersion the version of the map that this one replaces
     * @param slots the partition of each slot
     * @param moved the partition of each key slot, -1: as {@code slots} says; {@code null}: all are as {@code slots} says
     * @throws org.jooq.exception.DataAccessException with {@link SqlErrors#MAP_VERSION} if the map has another version, {@link
     *     SqlErrors#PARTITION_IN_USE} if a new partition was added for other purposes, {@link SqlErrors#NOT_MOVABLE} while keys are
     *     being moved between shards
     */
    public void grow(Connection connection, int streamId, int formerVersion, short[] slots, short @Nullable [] moved) {
        Jooq.using(connection)
                .fetch(schema.sql(GROW), streamId, formerVersion, boxed(slots), moved == null ? null : boxed(moved));
    }

    static Short[] boxed(short[] values) {
        Short[] boxed = new Short[values.length];
        for (int i = 0; i < values.length; i++) {
            boxed[i] = values[i];
        }
        return boxed;
    }

    /** Removes the last partition of a stream with its tables, unless it is in use; returns whether it did. */
    public boolean removePartition(Connection connection, int streamId) {
        return Boolean.TRUE.equals(Jooq.using(connection).fetchValue(schema.sql(REMOVE), streamId));
    }
}
