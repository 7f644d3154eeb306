package io.eventsql.reader;

import io.eventsql.reader.ReaderSql.Identity;
import io.eventsql.reader.ReaderSql.StreamRow;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Executor;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * A database and the connection that is kept to it, opened when it is needed. What is remembered of the database, its
 * incarnation and the ids of its streams, is forgotten when the database says that it has another incarnation. Thread-safe:
 * one thread reads at a time.
 */
final class ShardDatabase implements AutoCloseable {
    private static final Executor SAME_THREAD = Runnable::run;
    /** A pooler may lead to another server with each transaction. */
    private static final int ATTEMPTS_MAX = 5;

    private static final int SCHEMA_VERSION_MIN = 19;
    /** The part of the network timeout after which the database ends a statement. */
    private static final double SERVER_TIMEOUT_SHARE = 0.75;

    private final DataSource dataSource;
    private final ReaderSql sql;
    private final int networkTimeoutMs;
    private final String begin;
    private final Map<String, StreamRow> streams = new HashMap<>();

    private @Nullable KeptConnection kept;
    private @Nullable Identity identity;
    private @Nullable String incarnation;
    private boolean isClosed;

    ShardDatabase(DataSource dataSource, ReaderSql sql, ReaderSettings settings) {
        this.dataSource = dataSource;
        this.sql = sql;
        this.networkTimeoutMs = Math.toIntExact(settings.networkTimeout().toMillis());
        // READ COMMITTED, because a standby refuses SERIALIZABLE, which may be the role's default.
        this.begin = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY; SET LOCAL statement_timeout = "
                + Math.round(networkTimeoutMs * SERVER_TIMEOUT_SHARE);
    }

    private record KeptConnection(Connection connection, boolean formerAutoCommit, int formerNetworkTimeoutMs) {}

    /** Work in one read-only transaction. */
    @FunctionalInterface
    interface Work<T> {
        T run(Transaction transaction) throws SQLException;
    }

    /** A read-only transaction and what is known of its database. Used by one thread. */
    final class Transaction {
        private final Connection connection;
        private final String currentIncarnation;

        private Transaction(Connection connection, String currentIncarnation) {
            this.connection = connection;
            this.currentIncarnation = currentIncarnation;
        }

        Connection connection() {
            return connection;
        }

        /** Returns the incarnation to which the ids of streams belong. */
        String incarnation() {
            return currentIncarnation;
        }

        /** Returns the stream; empty if it does not exist on this shard. */
        Optional<StreamRow> stream(String name) throws SQLException {
            StreamRow known = streams.get(name);
            if (known != null) {
                return Optional.of(known);
            }
            Optional<StreamRow> found = sql.findStream(connection, name);
            found.ifPresent(stream -> streams.put(name, stream));
            return found;
        }
    }

    /**
     * Returns the identity, which the first connection finds out and each further one confirms.
     *
     * @throws DatabaseUnavailableException if the database does not respond
     */
    synchronized Identity identity() {
        Identity known = identity;
        return known != null ? known : read("Opening a shard", transaction -> requireIdentity());
    }

    private Identity requireIdentity() {
        Identity found = identity;
        if (found == null) {
            throw new IllegalStateException("not connected");
        }
        return found;
    }

    /**
     * Runs work in a read-only transaction; again if the database has another incarnation than is remembered, or if the kept
     * connection turns out to be broken.
     *
     * @param action what the work does, for messages
     */
    synchronized <T> T read(String action, Work<T> work) {
        for (int attempt = 1; ; attempt++) {
            boolean isNew = kept == null;
            try {
                return transaction(work);
            } catch (SQLException e) {
                boolean isStale = SqlFailures.isStale(e);
                if (isStale) {
                    forget();
                }
                boolean isRepeated = isStale ? attempt < ATTEMPTS_MAX : SqlFailures.isConnectionLost(e) && !isNew;
                if (!isRepeated) {
                    throw SqlFailures.explain(action + describe(), e);
                }
            }
        }
    }

    private String describe() {
        Identity known = identity;
        return known == null
                ? ""
                : " on shard " + known.shard() + " (" + known.names().get(known.shard()) + ")";
    }

    private <T> T transaction(Work<T> work) throws SQLException {
        Connection connection = connection();
        boolean isCommitted = false;
        try {
            begin(connection);
            String current = incarnation;
            if (current == null) {
                current = sql.findIncarnation(connection);
                if (current == null) {
                    throw new DatabaseUnavailableException(
                            "The database is being restored, or was restored or copied and the library has not opened it"
                                    + " since; open it, or call declare_restored",
                            null);
                }
                incarnation = current;
            }
            T result = work.run(new Transaction(connection, current));
            connection.commit();
            isCommitted = true;
            return result;
        } finally {
            if (!isCommitted) {
                rollback(connection);
            }
        }
    }

    private void begin(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(begin);
        }
    }

    private void rollback(Connection connection) {
        try {
            connection.rollback();
        } catch (SQLException e) { // it is broken: the first error is the one to report
            discard();
        }
    }

    private Connection connection() throws SQLException {
        if (isClosed) {
            throw new IllegalStateException("The reader is closed");
        }
        KeptConnection present = kept;
        if (present != null) {
            return present.connection();
        }
        Connection connection = dataSource.getConnection();
        boolean isUsable = false;
        try {
            kept = new KeptConnection(connection, connection.getAutoCommit(), connection.getNetworkTimeout());
            connection.setNetworkTimeout(SAME_THREAD, networkTimeoutMs);
            connection.setAutoCommit(false);
            confirmIdentity(connection);
            isUsable = true;
            return connection;
        } finally {
            if (!isUsable) {
                discard();
            }
        }
    }

    private void confirmIdentity(Connection connection) throws SQLException {
        begin(connection);
        Identity found = sql.findIdentity(connection)
                .orElseThrow(
                        () -> new ShardIdentityException("A database is no shard yet: the library has not opened it"));
        connection.commit();
        if (found.schemaVersion() < SCHEMA_VERSION_MIN) {
            throw new EventReaderException("The schema of shard " + found.shard() + " has version "
                    + found.schemaVersion() + ", but the reader needs " + SCHEMA_VERSION_MIN
                    + " or later; open it with a later release first");
        }
        Identity known = identity;
        if (known != null && !known.isSameShard(found)) {
            throw new ShardIdentityException("A database was shard " + known.shard() + " of cluster " + known.cluster()
                    + ", and is now shard " + found.shard() + " of cluster " + found.cluster());
        }
        identity = found;
    }

    private void forget() {
        incarnation = null;
        streams.clear();
    }

    /** Closes a connection that may be broken, so that no pool lends it again. */
    private void discard() {
        KeptConnection discarded = kept;
        kept = null;
        if (discarded != null) {
            try {
                discarded.connection().abort(SAME_THREAD);
                discarded.connection().close();
            } catch (SQLException e) {
                return; // it is closed
            }
        }
    }

    /** Returns the connection as it was borrowed. Idempotent. */
    @Override
    public synchronized void close() {
        isClosed = true;
        KeptConnection returned = kept;
        kept = null;
        if (returned == null) {
            return;
        }
        try (Connection connection = returned.connection()) {
            connection.setAutoCommit(returned.formerAutoCommit());
            connection.setNetworkTimeout(SAME_THREAD, returned.formerNetworkTimeoutMs());
        } catch (SQLException e) {
            return; // it is broken, and closed
        }
    }
}
