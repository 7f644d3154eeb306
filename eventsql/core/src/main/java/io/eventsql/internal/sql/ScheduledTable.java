package io.eventsql.internal.sql;

import io.eventsql.ScheduleBacklog;
import io.eventsql.ScheduledEvent;
import io.eventsql.internal.sql.OutboxTable.Row;
import io.eventsql.internal.sql.RelayTable.Page;
import io.eventsql.internal.sql.RelayTable.RelayLease;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** {@code scheduled_event}: events until they are due, in the database of each outbox. Thread-safe. */
public final class ScheduledTable {
    /** Before all events: nothing can be scheduled for an earlier time. */
    public static final OffsetDateTime BEGINNING = OffsetDateTime.ofInstant(Instant.EPOCH, ZoneOffset.UTC);

    // Index: the primary key of each table. Locks nothing but the new row.
    private static final String SCHEDULE = "SELECT eventsql.schedule_v1(?, ?, ?, ?, ?, ?, ?, ?, ?)";

    // Index: the primary key of each table. Locks the deleted row.
    private static final String CANCEL = "SELECT eventsql.cancel_scheduled_v1(?, ?)" + CommitWarnings.COLUMN;

    // Index: the primary key of each table, in its order. Takes no row lock.
    private static final String LIST = """
            SELECT id, due_at, stream, key, value_bytes, written_at
            FROM eventsql.scheduled_events_v1(?, ?::timestamptz, ?, ?)""";

    // Index: the primary key of each table, its first entries. Takes no row lock.
    private static final String BACKLOG = "SELECT events, overdue_ms FROM eventsql.scheduled_backlog_v1(?)";

    // Index: the primary key of each table, from a time on. Takes no row lock.
    private static final String NEXT_DUE = "SELECT eventsql.next_due_v1(?), clock_timestamp()";

    // Locks the relay's row and the deleted rows; index: the primary key of each table, from a time on.
    private static final String TAKE = """
            SELECT producer_id, id, due_at, stream, key, value, headers, routing_hash, written_at
            FROM eventsql.take_due_v1(?, ?, ?, ?, ?, ?)""";

    // Index: the primary key of the last table, in its order. Locks the moved rows.
    private static final String ADVANCE = "SELECT eventsql.advance_scheduled_v1(?)";

    // Reads the size of the files of tables whose hours have passed: neither the last hour, nor one of the next four.
    private static final String PASSED_TABLES = """
            SELECT n
            FROM generate_series(0, 7) AS n
            WHERE mod(n - floor(extract(epoch FROM clock_timestamp()) / 3600)::bigint % 8 + 8, 8) IN (5, 6)
              AND pg_relation_size(format('%s_%s', 'eventsql.scheduled_event', n)::regclass) > 0
            ORDER BY n""";

    // Reads all rows. Locks the deleted ones.
    private static final String DELETE = "SELECT eventsql.delete_scheduled_v1(?)";

    private final SqlSchema schema;
    private final String schedule;
    private final String scheduleAndCommit;
    private final String cancel;
    private final String nextDue;
    private final String take;

    public ScheduledTable(SqlSchema schema) {
        this.schema = schema;
        schedule = schema.sql(SCHEDULE);
        scheduleAndCommit = schedule + CommitWarnings.COLUMN;
        cancel = schema.sql(CANCEL);
        nextDue = schema.sql(NEXT_DUE);
        take = schema.sql(TAKE);
    }

    /**
     * An event to be scheduled.
     *
     * @param value {@code null}: a tombstone
     * @param headers a JSON object or {@code null}
     * @param routingHash routes an event without a key
     */
    @SuppressWarnings("ArrayRecordComponent") // goes to the driver as it is
    public record Scheduled(
            UUID id,
            Instant due,
            String stream,
            @Nullable String key,
            byte @Nullable [] value,
            @Nullable String headers,
            int routingHash) {}

    /**
     * Schedules an event: in autocommit mode, or in the caller's transaction.
     *
     * @param isRepeated whether it may be scheduled already, which is then the result
     * @param incarnation that of the shard; {@code null} in a transaction of the application
     * @return in how many microseconds it is due, by the database's clock
     * @throws SQLException {@link SqlErrors#MAY_BE_MOVED} if it may have been scheduled and appended already; in autocommit
     *     mode also if a warning leaves it in doubt whether the replicas have it
     */
    public long schedule(Connection connection, Scheduled event, boolean isRepeated, @Nullable String incarnation)
            throws SQLException {
        String sql = incarnation == null ? schedule : scheduleAndCommit; // no setting of the application's transaction
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setObject(1, event.id());
            statement.setObject(2, utc(event.due()));
            statement.setString(3, event.stream());
            statement.setString(4, event.key());
            statement.setBytes(5, event.value());
            statement.setString(6, event.headers());
            statement.setInt(7, event.routingHash());
            statement.setBoolean(8, isRepeated);
            statement.setString(9, incarnation);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                if (incarnation != null) {
                    requireNoDoubt(connection, statement);
                }
                return row.getLong(1);
            }
        }
    }

    /**
     * Cancels an event.
     *
     * @return whether it was still scheduled
     * @throws SQLException also if a warning leaves it in doubt whether the replicas know
     */
    public boolean cancel(Connection connection, UUID id, Instant due) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(cancel)) {
            statement.setObject(1, id);
            statement.setObject(2, utc(due));
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                requireNoDoubt(connection, statement);
                return row.getBoolean(1);
            }
        }
    }

    private static void requireNoDoubt(Connection connection, PreparedStatement statement) throws SQLException {
        if (connection.getAutoCommit()) { // otherwise the commit is still to come
            SqlErrors.requireNoDoubt(statement.getWarnings());
        }
    }

    /**
     * Returns scheduled events, ordered by due time and id.
     *
     * @param stream {@code null}: of all streams
     * @param afterDue with {@code after} the event after which to begin
     * @param database the name for the result
     */
    public List<ScheduledEvent> list(
            Connection connection, @Nullable String stream, Instant afterDue, UUID after, int max, String database) {
        return Jooq.using(connection)
                .fetch(schema.sql(LIST), stream, utc(afterDue), after, max)
                .map(r -> new ScheduledEvent(
                        r.get("id", UUID.class),
                        r.get("stream", String.class),
                        r.get("key", String.class),
                        r.get("due_at", OffsetDateTime.class).toInstant(),
                        r.get("written_at", OffsetDateTime.class).toInstant(),
                        Objects.requireNonNullElse(r.get("value_bytes", Long.class), 0L),
                        database));
    }

    /** Returns how many events are scheduled, and for how long the first has been due. */
    public ScheduleBacklog backlog(Connection connection, String database) {
        return Jooq.using(connection)
                .fetchSingle(schema.sql(BACKLOG), ScheduleBacklog.COUNTED_MAX)
                .map(r -> new ScheduleBacklog(
                        database, r.get("events", Long.class), Duration.ofMillis(r.get("overdue_ms", Long.class))));
    }

    /**
     * The next event that is due.
     *
     * @param inMicros in how many microseconds; negative if it is overdue, empty if there is none
     * @param now the database's clock
     */
    public record NextDue(OptionalLong inMicros, OffsetDateTime now) {}

    /** Returns when the next event is due, of those due from a time on. */
    public NextDue nextDue(Connection connection, OffsetDateTime from) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(nextDue)) {
            statement.setObject(1, from);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                long micros = row.getLong(1);
                boolean isNone = row.wasNull();
                return new NextDue(
                        isNone ? OptionalLong.empty() : OptionalLong.of(micros),
                        row.getObject(2, OffsetDateTime.class));
            }
        }
    }

    /**
     * Events that are due.
     *
     * @param page in the order of due time and id; a row's id is the part of the event's id that differs most
     * @param last when the last one is due; {@code null} in an empty page
     */
    public record Due(Page page, @Nullable OffsetDateTime last) {}

    /**
     * Deletes and returns events that are due, under the lock of the relay's row.
     *
     * @param from only those that are due from this time on
     * @throws SQLException {@link SqlErrors#RELAY_LOST} if the lease has ended
     */
    public Due take(Connection connection, RelayLease lease, int maxEvents, long maxBytes, OffsetDateTime from)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(take)) {
            statement.setObject(1, lease.holder());
            statement.setLong(2, lease.epoch());
            statement.setInt(3, lease.timeoutMs());
            statement.setInt(4, maxEvents);
            statement.setLong(5, maxBytes);
            statement.setObject(6, from);
            List<Row> rows = new ArrayList<>();
            UUID producer = null;
            OffsetDateTime last = null;
            try (ResultSet result = statement.executeQuery()) {
                while (result.next()) {
                    producer = result.getObject(1, UUID.class);
                    last = result.getObject(3, OffsetDateTime.class);
                    rows.add(new Row(
                            result.getObject(2, UUID.class).getLeastSignificantBits(),
                            result.getString(4),
                            result.getString(5),
                            result.getBytes(6),
                            result.getString(7),
                            result.getInt(8),
                            result.getObject(9, OffsetDateTime.class)));
                }
            }
            return new Due(new Page(producer, rows), last);
        }
    }

    /** Moves events that are due in two hours to the tables of their hours, in a transaction of the relay; returns how many. */
    public int advance(Connection connection, int max) {
        return (Integer) Objects.requireNonNull(Jooq.using(connection).fetchValue(schema.sql(ADVANCE), max));
    }

    /** Returns the tables of the ring that are to be emptied. */
    public List<Integer> passedTables(Connection connection) {
        return Jooq.using(connection).fetch(schema.sql(PASSED_TABLES)).getValues(0, Integer.class);
    }

    /** Empties a table as {@link OutboxTable#truncateIfEmpty} does a table of the ring. */
    public boolean truncateIfEmpty(Connection connection, int ring) throws SQLException {
        return OutboxTable.truncateIfEmpty(connection, schema.sql("eventsql.scheduled_event_" + ring));
    }

    /** Deletes the scheduled events of a stream; returns how many. */
    public long deleteOf(Connection connection, String stream) {
        return (Long) Objects.requireNonNull(Jooq.using(connection).fetchValue(schema.sql(DELETE), stream));
    }

    private static OffsetDateTime utc(Instant time) {
        return time.atOffset(ZoneOffset.UTC);
    }
}
