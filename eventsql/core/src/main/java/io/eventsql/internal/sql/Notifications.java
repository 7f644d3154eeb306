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

/** A NOTIFY channel of a database, named after the schema: the shard's, or the outbox's. */
public final class Notifications {
    /** The end of the channel on which the relay of an outbox is told of new events. */
    static final String OUTBOX = "_outbox";

    private static final String WAKE = "_wake";

    private final String channel;
    private final String notify;

    public Notifications(SqlSchema schema) {
        this(schema, WAKE);
    }

    private Notifications(SqlSchema schema, String ending) {
        channel = schema.name() + ending;
        // A signal need not be durable: it must not wait for the disk.
        notify = "SELECT set_config('synchronous_commit', 'off', true), pg_notify('" + channel + "', ?)";
    }

    /** The channel of the outbox's relay, apart: it exists also in a database that is no shard. */
    public static Notifications ofOutbox(SqlSchema schema) {
        return new Notifications(schema, OUTBOX);
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
