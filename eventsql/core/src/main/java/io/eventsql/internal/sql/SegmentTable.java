package io.eventsql.internal.sql;

import java.sql.Connection;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * {@code segment}: the catalog of the segments of each partition, each a table. They are added by a function that runs with
 * the rights of its owner, so that publishers need no right to create tables.
 */
public final class SegmentTable {
    /** More are added by further transactions: each takes places in the server's lock table until its commit. */
    private static final int ADDED_PER_CALL_MAX = 10;

    // Index: the primary key of segment. Locks the parent in SHARE UPDATE EXCLUSIVE mode, and waits for that for 2 s at
    // most. Takes an advisory lock for the partition.
    private static final String ENSURE = """
            SELECT added, spare_offset
            FROM eventsql.ensure_segments_v1(?, ?, ?, ?)""";

    private final SqlSchema schema;

    public SegmentTable(SqlSchema schema) {
        this.schema = schema;
    }

    /**
     * The room that a partition has for its next events.
     *
     * @param added how many segments were added by this call
     * @param spareOffset the first offset of the last segment that is ready
     */
    public record Room(int added, long spareOffset) {
        /** Returns whether the call may have added less than was needed. */
        public boolean isPartial() {
            return added == ADDED_PER_CALL_MAX;
        }

        /** Returns whether more segments are due: {@code events} would reach the last one. */
        public boolean isExhausted(long head, long events) {
            return head + events >= spareOffset;
        }
    }

    /**
     * Adds the segments that a partition needs for its next events, and a spare one above, in the caller's transaction, which must
     * be READ COMMITTED.
     *
     * @param incarnation that of the database when the stream's id was read; {@code null}: not compared
     * @param events above the head for which there must be room
     */
    public Room ensure(Connection connection, @Nullable String incarnation, int streamId, int partition, long events) {
        return Objects.requireNonNull(
                        Jooq.using(connection).fetchOne(schema.sql(ENSURE), incarnation, streamId, partition, events))
                .map(row -> new Room(row.get(0, Integer.class), row.get(1, Long.class)));
    }
}
