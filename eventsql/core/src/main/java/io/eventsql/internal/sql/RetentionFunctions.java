package io.eventsql.internal.sql;

import io.eventsql.RetainedSegment;
import io.eventsql.RetentionStatus;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLWarning;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The functions by which segments expire, end early, and are dropped. They compute the streams' policies themselves and run
 * with the rights of their owner. Each call is to be a transaction of its own, READ COMMITTED.
 */
public final class RetentionFunctions {
    // Indexes: the primary keys of segment, producer_batch and consumer_offset. Takes no row lock.
    private static final String PLAN = """
            SELECT partition, first_offset, end_offset, is_active, table_name, bytes, last_published_at, expires_by, expires_at
            FROM eventsql.retention_plan_v1(?)""";

    // Index: segment_expired. Takes no row lock.
    private static final String STATUS = """
            SELECT expired_segments, expired_events, expired_bytes, segments_to_empty, empty_tables
            FROM eventsql.retention_status""";

    // Locks the row of retention_pass, that of one partition, and expired segments, each for 100 ms at most.
    private static final String EXPIRE = "SELECT eventsql.expire_v1(?::bigint * interval '1 ms')";

    // Indexes: segment_open and the primary key of producer_batch. Takes no row lock.
    private static final String SEGMENTS_TO_END = "SELECT stream_id, partition FROM eventsql.segments_to_end_v1(?)";

    // Locks the row of the partition, its table without waiting, and its segment; waits for 100 ms at most.
    private static final String END_SEGMENT = "SELECT eventsql.end_segment_v1(?, ?)";

    // Locks the segment exclusively for a moment, and waits for that for 100 ms at most.
    private static final String BEGIN_SEGMENT_END = "SELECT eventsql.begin_segment_end_v1(?, ?)";

    // Locks the segment in SHARE UPDATE EXCLUSIVE mode.
    private static final String CHECK_SEGMENT_END = "SELECT eventsql.check_segment_end_v1(?, ?)";

    // Index: segment_expired. Locks the row of a partition and its table.
    private static final String DROP_EMPTY = "SELECT eventsql.drop_empty_segments_v1(?)";

    private final SqlSchema schema;

    public RetentionFunctions(SqlSchema schema) {
        this.schema = schema;
    }

    /** What {@link #expire} has done. */
    public enum Step {
        /** The pass over all partitions continues: repeat the call. */
        MORE,
        /** The pass is finished. */
        FINISHED,
        /** The pass is finished, and no stream has a limit: there is nothing to remove. */
        IDLE,
        /** Nothing: another process takes a step, or the next pass is not due. */
        WAITING
    }

    /** What {@link #endSegment} has done. */
    public enum End {
        ENDED,
        /** The segment is not to end early. */
        NONE,
        /** Nothing: the segment is large, and {@link #beginSegmentEnd} and {@link #checkSegmentEnd} must prove its end. */
        LARGE
    }

    /** A partition of a stream. */
    public record Partition(int streamId, int number) {}

    /** Returns the segments with events of a stream, and what retention does with each. */
    public List<RetainedSegment> plan(Connection connection, int shard, int streamId) {
        return Jooq.using(connection)
                .fetch(schema.sql(PLAN), streamId)
                .map(r -> new RetainedSegment(
                        shard,
                        r.get("partition", Integer.class),
                        r.get("first_offset", Long.class),
                        r.get("end_offset", Long.class),
                        r.get("is_active", Boolean.class),
                        r.get("table_name", String.class),
                        Objects.requireNonNullElse(r.get("bytes", Long.class), 0L),
                        r.get("last_published_at", OffsetDateTime.class).toInstant(),
                        limit(r.get("expires_by", String.class)),
                        expiresAt(r.get("expires_at", OffsetDateTime.class))));
    }

    private static RetainedSegment.@Nullable Limit limit(@Nullable String name) {
        return name == null ? null : RetainedSegment.Limit.valueOf(name.toUpperCase(Locale.ROOT));
    }

    private static @Nullable Instant expiresAt(@Nullable OffsetDateTime time) {
        return time == null ? null : time.toInstant();
    }

    /** Returns what retention has removed, and what it has still to remove. */
    public RetentionStatus status(Connection connection, int shard) {
        org.jooq.Record r = Objects.requireNonNull(Jooq.using(connection).fetchOne(schema.sql(STATUS)));
        return new RetentionStatus(
                shard,
                r.get("expired_segments", Long.class),
                r.get("expired_events", Long.class),
                r.get("expired_bytes", Long.class),
                r.get("segments_to_empty", Long.class),
                r.get("empty_tables", Long.class));
    }

    /**
     * Takes the next step of retention.
     *
     * @param pause how long after the begin of one pass the next one begins, at least
     * @param warnings gets the sentences about partitions in which nothing could be done
     */
    public Step expire(Connection connection, Duration pause, Consumer<String> warnings) throws SQLException {
        return step(connection, schema.sql(EXPIRE), pause, warnings);
    }

    /** Takes a step by a function that warns of partitions which it leaves out. */
    static Step step(Connection connection, String sql, Duration pause, Consumer<String> warnings) throws SQLException {
        return Step.valueOf(text(call(connection, sql, pause.toMillis(), String.class, warnings)));
    }

    /** Calls a function of one parameter that warns of what it leaves out. */
    private static <T> T call(
            Connection connection, String sql, Object parameter, Class<T> type, Consumer<String> warnings)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setObject(1, parameter);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                T result = row.getObject(1, type);
                passOn(statement.getWarnings(), warnings);
                return Objects.requireNonNull(result);
            }
        }
    }

    private static void passOn(@Nullable SQLWarning first, Consumer<String> warnings) {
        for (SQLWarning warning = first; warning != null; warning = warning.getNextWarning()) {
            if (SqlErrors.state(warning).equals(SqlErrors.LEFT_OUT)) { // others are notices of what does not exist
                warnings.accept(SqlErrors.message(warning));
            }
        }
    }

    /** Returns partitions whose active segment is to end early, {@code max} at most. */
    public List<Partition> segmentsToEnd(Connection connection, int max) {
        return Jooq.using(connection)
                .fetch(schema.sql(SEGMENTS_TO_END), max)
                .map(r -> new Partition(r.get(0, Integer.class), r.get(1, Integer.class)));
    }

    /** Ends the active segment of a partition before it is full. */
    public End endSegment(Connection connection, Partition of) {
        return End.valueOf(
                text(Jooq.using(connection).fetchValue(schema.sql(END_SEGMENT), of.streamId(), of.number())));
    }

    /** Adds the constraint that proves the early end of a large segment; returns whether there is one to be checked. */
    public boolean beginSegmentEnd(Connection connection, Partition of) {
        return Boolean.TRUE.equals(
                Jooq.using(connection).fetchValue(schema.sql(BEGIN_SEGMENT_END), of.streamId(), of.number()));
    }

    /** Checks that constraint; reads the segment. */
    public void checkSegmentEnd(Connection connection, Partition of) {
        Jooq.using(connection).fetch(schema.sql(CHECK_SEGMENT_END), of.streamId(), of.number());
    }

    /**
     * Drops empty tables of one partition.
     *
     * @param wait whether to wait briefly for transactions that have read the stream
     * @param warnings gets the sentences about tables that cannot be dropped
     * @return how many
     */
    public int dropEmptySegments(Connection connection, boolean wait, Consumer<String> warnings) throws SQLException {
        return call(connection, schema.sql(DROP_EMPTY), wait, Integer.class, warnings);
    }

    private static String text(@Nullable Object value) {
        return Objects.requireNonNull(value).toString().toUpperCase(Locale.ROOT);
    }
}
