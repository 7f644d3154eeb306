package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;

/** {@code outbox_refused}: events that can never be appended, kept with the reason. Written under the relay's lock. */
public final class RefusedTable {
    private static final int ERROR_CHARACTERS_MAX = 1_000;

    // The primary key is generated: conflicts with nothing.
    private static final String INSERT = """
            INSERT INTO eventsql.outbox_refused (stream, key, value, headers, written_at, error)
            VALUES (?, ?, ?, ?::json, ?, ?)""";

    // Index: the primary key of outbox_transfer. Locks the deleted row, so that an erased event is not kept, although
    // the
    // caller has read it before.
    private static final String INSERT_TRANSFERRED = """
            WITH taken AS (
                DELETE FROM eventsql.outbox_transfer
                WHERE shard = ? AND number = ?
                RETURNING stream, key, value, headers, written_at, erased_at)
            INSERT INTO eventsql.outbox_refused (stream, key, value, headers, written_at, error)
            SELECT stream, key, value, headers, written_at, ?
            FROM taken
            WHERE erased_at IS NULL OR value IS NULL""";

    private final String insert;
    private final String insertTransferred;

    public RefusedTable(SqlSchema schema) {
        insert = schema.sql(INSERT);
        insertTransferred = schema.sql(INSERT_TRANSFERRED);
    }

    /** Inserts an event of the outbox, in the caller's transaction, which deletes it there. */
    public void insert(Connection connection, OutboxTable.Row event, String error) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(insert)) {
            statement.setString(1, event.stream());
            statement.setString(2, event.key());
            statement.setBytes(3, event.value());
            statement.setString(4, event.headers());
            statement.setObject(5, event.writtenAt());
            statement.setString(6, shortened(error));
            statement.executeUpdate();
        }
    }

    /** Moves an event of the transfer table, in the caller's transaction; deletes it if it was erased. */
    public void move(Connection connection, int shard, long number, String error) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(insertTransferred)) {
            statement.setInt(1, shard);
            statement.setLong(2, number);
            statement.setString(3, shortened(error));
            statement.executeUpdate();
        }
    }

    private static String shortened(String error) {
        return error.substring(0, Math.min(error.length(), ERROR_CHARACTERS_MAX));
    }
}
