package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;

/** A NOTIFY channel of a database, named after the schema: that of the shard, or that of its outbox. */
public final class Notifications {
    /** The suffix of the channel that notifies the relay of an outbox of new events. */
    static final String OUTBOX = "_outbox";

    private static final String WAKE = "_wake";

    private final String channel;
    private final String notify;

    public Notifications(SqlSchema schema) {
        this(schema, WAKE);
    }

    private Notifications(SqlSchema schema, String suffix) {
        channel = schema.name() + suffix;
        // A notification need not be durable, so it does not wait for the disk. The commit waits for that of every
        // other
        // transaction that has notified someone, which may wait for a missing replica.
        notify = "SELECT set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '2000', true),"
                + " pg_notify('" + channel + "', ?)";
    }

    /** Returns the channel of the outbox's relay, which exists also in a database that is not a shard. */
    public static Notifications ofOutbox(SqlSchema schema) {
        return new Notifications(schema, OUTBOX);
    }

    /** Notifies all listeners, in a transaction of its own, never as part of an append. */
    public void send(Connection connection, String payload) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(notify)) {
            statement.setString(1, payload);
            statement.execute();
        }
    }

    /**
     * Returns whether the connection goes through a pooler: the server process that runs a statement is not the one that
     * the connection was given. There, LISTEN may remain on a connection that other clients use next.
     */
    public static boolean isThroughPooler(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("SELECT pg_backend_pid()");
                ResultSet row = statement.executeQuery()) {
            row.next();
            return row.getInt(1) != connection.unwrap(PGConnection.class).getBackendPID();
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

    /** Waits for notifications for at most the given time; returns their payloads. */
    public List<String> await(Connection connection, int timeoutMs) throws SQLException {
        PGNotification @Nullable [] signals =
                connection.unwrap(PGConnection.class).getNotifications(timeoutMs);
        return signals == null
                ? List.of()
                : Stream.of(signals).map(PGNotification::getParameter).toList();
    }
}
