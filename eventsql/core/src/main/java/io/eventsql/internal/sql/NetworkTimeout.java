package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.Executor;

/** A network timeout that a connection has for a while; closing it restores the former one. */
public final class NetworkTimeout implements AutoCloseable {
    private static final Executor SAME_THREAD = Runnable::run;

    private final Connection connection;
    private final int formerMs;

    private NetworkTimeout(Connection connection, int formerMs) {
        this.connection = connection;
        this.formerMs = formerMs;
    }

    /** Sets the network timeout of the connection. */
    public static NetworkTimeout set(Connection connection, Duration timeout) throws SQLException {
        NetworkTimeout former = new NetworkTimeout(connection, connection.getNetworkTimeout());
        connection.setNetworkTimeout(SAME_THREAD, Math.toIntExact(timeout.toMillis()));
        return former;
    }

    /**
     * Returns the time after which a function that appends begins nothing more: half of the connection's network timeout. What it
     * has begun ends within the other half.
     */
    static int timeLimitMs(Connection connection) throws SQLException {
        return connection.getNetworkTimeout() / 2;
    }

    /** Restores the former network timeout, unless the connection is broken and therefore not used any more. */
    @Override
    public void close() throws SQLException {
        if (!connection.isClosed()) {
            connection.setNetworkTimeout(SAME_THREAD, formerMs);
        }
    }
}
