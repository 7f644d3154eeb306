package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/**
 * The versions of the maps by which an append was routed. An append function compares one version with all its partitions. If the
 * streams of a batch have different versions, they are compared by another function, which precedes it in the same statement.
 *
 * @param version that of all partitions; {@code null}: nothing is compared, or each partition has its own
 * @param versions that of each partition; empty: all have the same
 */
@SuppressWarnings("ArrayRecordComponent") // goes to the driver as it is
public record MapFence(@Nullable Integer version, int[] versions) {
    /** For events that are not routed by their keys. */
    public static final MapFence NONE = new MapFence(null, new int[0]);

    // Indexes: the primary key of stream_partition, producer_batch_of_producer. Locks what the append locks next.
    private static final String COMPARE = "SELECT CASE WHEN eventsql.require_maps_v1(?, ?, ?, ?, ?, ?) THEN (";

    private static final int PARAMETERS = 6;

    /** Returns the fence of one version. */
    public static MapFence of(int version) {
        return new MapFence(version, new int[0]);
    }

    /** Returns the fence of partitions with these versions. */
    public static MapFence of(int[] versions) {
        for (int version : versions) {
            if (version != versions[0]) {
                return new MapFence(null, versions);
            }
        }
        return of(versions[0]);
    }

    private boolean isMixed() {
        return versions.length > 0;
    }

    /** Returns the number of parameters before those of the append. */
    int parameters() {
        return isMixed() ? PARAMETERS : 0;
    }

    /** Returns the statement that compares the versions where the append does not, and then appends. */
    String precede(SqlSchema schema, String append) {
        return isMixed() ? schema.sql(COMPARE) + append + ") END" : append;
    }

    /** Sets the parameters before those of the append. */
    void set(
            Connection connection,
            PreparedStatement statement,
            UUID producer,
            long number,
            int[] streamIds,
            int[] partitions)
            throws SQLException {
        if (isMixed()) {
            PGConnection pg = connection.unwrap(PGConnection.class);
            statement.setObject(1, producer);
            statement.setLong(2, number);
            statement.setInt(3, NetworkTimeout.timeLimitMs(connection));
            statement.setArray(4, pg.createArrayOf("int4", streamIds));
            statement.setArray(5, pg.createArrayOf("int4", partitions));
            statement.setArray(6, pg.createArrayOf("int4", versions));
        }
    }
}
