package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** {@code replicated_incarnation}: what the primary writes so that readers of a standby know what it has replayed. */
public final class ReplicaTable {
    // Indexes: the primary keys of incarnation and replicated_incarnation. Locks the one row when it writes it.
    private static final String RECORD = "SELECT eventsql.record_incarnation_v1(?, ? * interval '1 ms')";

    // Indexes: the primary keys of shard, incarnation and replicated_incarnation. Takes no row lock: it runs on a
    // standby.
    private static final String STATE = """
            SELECT CASE
                       WHEN NOT EXISTS (SELECT FROM eventsql.shard s WHERE s.cluster_id = ? AND s.shard_number = ?)
                           THEN 'OTHER_DATABASE'
                       WHEN NOT pg_is_in_recovery()
                           THEN CASE WHEN eventsql.incarnation_v1() = ? THEN 'CURRENT' ELSE 'OTHER_HISTORY' END
                       WHEN r.incarnation IS NULL THEN 'NOT_REPLAYED'
                       ELSE 'CURRENT'
                   END,
                   r.recorded_at
            FROM (SELECT ?::text AS incarnation) wanted
            LEFT JOIN eventsql.replicated_incarnation r USING (incarnation)""";

    private final String record;
    private final String state;

    public ReplicaTable(SqlSchema schema) {
        record = schema.sql(RECORD);
        state = schema.sql(STATE);
    }

    /** Which history a server has. */
    public enum History {
        /** That of the primary, at least up to a moment of its present incarnation. */
        CURRENT,
        /** Perhaps that of the primary: a standby that has not replayed anything of its present incarnation. */
        NOT_REPLAYED,
        /** Another one: the server accepts writes, and is not the primary. */
        OTHER_HISTORY,
        /** It is no copy of the shard. */
        OTHER_DATABASE
    }

    /**
     * What a server has replayed.
     *
     * @param recordedAt the last time of the primary that it has; {@code null} if it has none of the incarnation
     */
    public record State(History history, @Nullable Instant recordedAt) {}

    /**
     * Records the incarnation and the time on the primary, unless that was done within the interval.
     *
     * @return the time of the primary's clock that is recorded
     * @throws SQLException {@link SqlErrors#OTHER_INCARNATION} if the database has another one
     */
    public Instant record(Connection connection, String incarnation, Duration interval) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(record)) {
            statement.setString(1, incarnation);
            statement.setLong(2, interval.toMillis());
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getObject(1, OffsetDateTime.class).toInstant();
            }
        }
    }

    /**
     * Returns what the server of a connection has replayed.
     *
     * @param incarnation that of the primary
     */
    public State state(Connection connection, UUID clusterId, int shard, String incarnation) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(state)) {
            statement.setObject(1, clusterId);
            statement.setInt(2, shard);
            statement.setString(3, incarnation);
            statement.setString(4, incarnation);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                @Nullable OffsetDateTime recordedAt = row.getObject(2, OffsetDateTime.class);
                return new State(History.valueOf(row.getString(1)), recordedAt == null ? null : recordedAt.toInstant());
            }
        }
    }
}
