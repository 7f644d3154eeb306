package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.OffsetDateTime;
import org.jspecify.annotations.Nullable;

/** {@code outbox_refused}: events that can never be appended, kept with the reason. Written under the relay's lock. */
public final class RefusedTable {
    private static final int ERROR_CHARACTERS_MAX = 1_000;

    // The primary key is generated: conflicts with nothing.
    private static final String INSERT = """
            INSERT INTO eventsql.outbox_refused (stream, key, value, headers, written_at, error)
            VALUES (?, ?, ?, ?::json, ?, ?)""";

    private final String insert;

    public RefusedTable(SqlSchema schema) {
        insert = schema.sql(INSERT);
    }

    /** Inserts an event of the outbox, in the caller's transaction, which deletes it there. */
    public void insert(Connection connection, OutboxTable.Row event, String error) throws SQLException {
        insert(connection, event.stream(), event.key(), event.value(), event.headers(), event.writtenAt(), error);
    }

    /** Inserts an event of the transfer table, in the caller's transaction, which deletes it there. */
    public void insert(Connection connection, TransferTable.Row event, String error) throws SQLException {
        insert(connection, event.stream(), event.key(), event.value(), event.headers(), event.writtenAt(), error);
    }

    private void insert(
            Connection connection,
            String stream,
            @Nullable String key,
            byte[] value,
            @Nullable String headers,
            OffsetDateTime writtenAt,
            String error)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(insert)) {
            statement.setString(1, stream);
            statement.setString(2, key);
            statement.setBytes(3, value);
            statement.setString(4, headers);
            statement.setObject(5, writtenAt);
            statement.setString(6, error.substring(0, Math.min(error.length(), ERROR_CHARACTERS_MAX)));
            statement.executeUpdate();
        }
    }
}
