package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;

/** The shard's NOTIFY channel, named after the schema. */
public final class Notifications {
    private final String channel;
    private final String notify;

    public Notifications(SqlSchema schema) {
        channel = schema.name() + "_wake";
        // A signal need not be durable: it must not wait for the disk.
        notify = "SELECT set_config('synchronous_commit', 'off', true), pg_notify('" + channel + "', ?)";
    }

    /** Signals everyone who listens; a transaction of its own, never part of an append. */
    public void send(Connection connection, String payload) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(notify)) {
            statement.setString(1, payload);
            statement.execute();
        }
    }

    public void listen(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("LISTEN " + channel);
        }
    }

    public void unlisten(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("UNLISTEN " + channel);
        }
    }

    /** Waits for signals at most for the given time; returns their payloads. */
    public List<String> await(Connection connection, int timeoutMs) throws SQLException {
        PGNotification @Nullable [] signals =
                connection.unwrap(PGConnection.class).getNotifications(timeoutMs);
        return signals == null
                ? List.of()
                : Stream.of(signals).map(PGNotification::getParameter).toList();
    }
}
