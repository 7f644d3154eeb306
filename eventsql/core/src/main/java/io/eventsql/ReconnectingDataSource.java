package io.eventsql;

import java.io.PrintWriter;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.logging.Logger;
import javax.sql.DataSource;

/**
 * The data source of a connection pool, not the pool itself: it waits for a database that is down, instead of failing at once.
 *
 * <p>HikariCP doubles the pause between two attempts to connect, up to 5 s, and makes no other attempt during the pause, so after
 * an outage it may take as long again before the first connection is opened. With this data source an attempt is made every 100 ms:
 *
 * <pre>{@code
 * PGSimpleDataSource postgresql = new PGSimpleDataSource();
 * postgresql.setURL("jdbc:postgresql://db0/events");
 * HikariConfig config = new HikariConfig();
 * config.setDataSource(ReconnectingDataSource.of(postgresql, Duration.ofSeconds(5)));
 * EventSql eventSql = EventSql.builder(new HikariDataSource(config)).build();
 * }</pre>
 *
 * <p>The pools that the Spring Boot starter creates for {@code eventsql.shards} have it. Thread-safe if the data source is that it
 * connects with.
 */
public final class ReconnectingDataSource implements DataSource {
    private static final long PAUSE_MS = 100;

    private final DataSource dataSource;
    private final long waitNanos;

    private ReconnectingDataSource(DataSource dataSource, Duration maxWait) {
        this.dataSource = Objects.requireNonNull(dataSource, "dataSource");
        this.waitNanos = maxWait.toNanos();
    }

    /**
     * Creates a data source that connects by another one.
     *
     * @param dataSource opens a connection at each call, and is no pool
     * @param maxWait how long a call waits for the database before it fails, 0 to 1 min. A pool says why it has no connection only
     *     if its own time limit, such as HikariCP's {@code connectionTimeout}, is longer.
     * @throws InvalidInputException if {@code maxWait} is out of range
     */
    public static ReconnectingDataSource of(DataSource dataSource, Duration maxWait) {
        Settings.requireDuration("maxWait", maxWait, Duration.ZERO, Duration.ofMinutes(1));
        return new ReconnectingDataSource(dataSource, maxWait);
    }

    /** How a connection is opened. */
    private interface Attempt {
        Connection connect() throws SQLException;
    }

    /**
     * Opens a connection as soon as the database accepts it.
     *
     * @throws SQLException the reason of the last attempt: the database was down for too long, the thread was interrupted, whose
     *     flag is set again, or, at once, the connection was refused for another reason
     */
    @Override
    public Connection getConnection() throws SQLException {
        return connect(dataSource::getConnection);
    }

    /** Opens a connection as {@link #getConnection()} does, for a role. */
    @Override
    public Connection getConnection(String username, String password) throws SQLException {
        return connect(() -> dataSource.getConnection(username, password));
    }

    private Connection connect(Attempt attempt) throws SQLException {
        long began = System.nanoTime();
        while (true) {
            try {
                return attempt.connect();
            } catch (SQLException e) {
                if (!isDown(e) || System.nanoTime() - began >= waitNanos) {
                    throw e;
                }
                pause(e);
            }
        }
    }

    private static void pause(SQLException reason) throws SQLException {
        try {
            TimeUnit.MILLISECONDS.sleep(PAUSE_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw reason;
        }
    }

    /** Returns whether the server is unreachable (class 08, but for a rejection), is being started or is shutting down. */
    private static boolean isDown(SQLException e) {
        String state = Objects.requireNonNullElse(e.getSQLState(), "");
        return (state.startsWith("08") && !state.equals("08004")) || state.equals("57P01") || state.equals("57P03");
    }

    @Override
    public PrintWriter getLogWriter() throws SQLException {
        return dataSource.getLogWriter();
    }

    @Override
    public void setLogWriter(PrintWriter out) throws SQLException {
        dataSource.setLogWriter(out);
    }

    @Override
    public int getLoginTimeout() throws SQLException {
        return dataSource.getLoginTimeout();
    }

    @Override
    public void setLoginTimeout(int seconds) throws SQLException {
        dataSource.setLoginTimeout(seconds);
    }

    @Override
    public Logger getParentLogger() throws SQLFeatureNotSupportedException {
        return dataSource.getParentLogger();
    }

    @Override
    public <T> T unwrap(Class<T> type) throws SQLException {
        return type.isInstance(dataSource) ? type.cast(dataSource) : dataSource.unwrap(type);
    }

    @Override
    public boolean isWrapperFor(Class<?> type) throws SQLException {
        return type.isInstance(dataSource) || dataSource.isWrapperFor(type);
    }
}
