package io.eventsql.flink.sink;

import io.eventsql.flink.sink.SinkSql.Identity;
import io.eventsql.flink.sink.SinkSql.StoredMap;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Executor;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * A shard's database and the connection to it, opened when it is needed and again after an error. Used by one thread.
 *
 * <p>Each call is a transaction of its own, which sets what it needs for itself: behind a pooler, another client has the session
 * next. The server ends a transaction whose client does not continue.
 */
final class SinkDatabase implements AutoCloseable {
    private static final Executor SAME_THREAD = Runnable::run;
    private static final int SCHEMA_VERSION_MIN = 31;
    private static final int STALE_ATTEMPTS_MAX = 3;

    private final DataSource dataSource;
    private final SinkSql sql;
    private final int networkTimeoutMs;
    private final String begin;
    private final Map<String, Integer> streamIds = new HashMap<>();

    private @Nullable Connection connection;
    private @Nullable Identity identity;
    private @Nullable String incarnation;

    SinkDatabase(DataSource dataSource, SinkSql sql, int networkTimeoutMs) {
        this.dataSource = dataSource;
        this.sql = sql;
        this.networkTimeoutMs = networkTimeoutMs;
        // Without the warnings of the commit, one that no replica has would count as one that all have.
        this.begin = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET LOCAL client_min_messages = warning;"
                + " SET LOCAL idle_in_transaction_session_timeout = " + networkTimeoutMs;
    }

    /** The databases or the stream are not those of the settings: no attempt helps. */
    static final class WrongDatabaseException extends SQLException {
        private static final long serialVersionUID = 1L;

        WrongDatabaseException(String message) {
            super(message, "ES000");
        }
    }

    /** Work in one transaction. */
    @FunctionalInterface
    private interface Work<T> {
        T run(Connection connection) throws SQLException;
    }

    /** Returns the identity, with the slot map as it is now. */
    Identity findIdentity() throws SQLException {
        return transaction(this::requireIdentity);
    }

    /** Returns the map of a stream as it is now; empty if the stream does not exist here. */
    Optional<StoredMap> findMap(String stream) throws SQLException {
        return transaction(current -> findMap(current, stream));
    }

    private Optional<StoredMap> findMap(Connection current, String stream) throws SQLException {
        requireIdentity(current);
        return sql.findMap(current, stream);
    }

    /** Returns the map of a stream that followed a version, or the newest if none is known to have followed. */
    StoredMap findNextMap(String stream, int version) throws SQLException {
        return transaction(current -> {
            Optional<StoredMap> next = sql.findNextMap(current, stream, version);
            return (next.isPresent() ? next : findMap(current, stream)).orElseThrow(() -> missing(stream));
        });
    }

    /**
     * Appends a batch, unless it is stored already, in a transaction that is committed when this returns.
     *
     * @param sink {@code null}: the batch's producer need not be remembered
     * @return whether it was not stored before
     * @throws SQLException if it is not stored, or may not be: it may be repeated
     */
    boolean append(@Nullable String sink, EventBatch batch) throws SQLException {
        for (int attempt = 1; ; attempt++) {
            try {
                return transaction(current -> sql.append(
                        current,
                        sink,
                        requireIncarnation(current),
                        networkTimeoutMs / 2,
                        requireStreamId(current, batch.stream()),
                        batch));
            } catch (SQLException e) {
                if (attempt == STALE_ATTEMPTS_MAX || !repair(e, batch)) {
                    throw e;
                }
            }
        }
    }

    /** Removes the reason of an error, if that is possible. */
    private boolean repair(SQLException e, EventBatch batch) throws SQLException {
        if (SinkErrors.isStale(e)) {
            incarnation = null;
            streamIds.clear();
            return true;
        } else if (SinkErrors.isMissingSegment(e)) {
            addSegments(batch);
            return true;
        }
        return false;
    }

    /** Adds segments until there is room for the batch: a few by each transaction. */
    private void addSegments(EventBatch batch) throws SQLException {
        int added;
        do {
            added = transaction(current -> sql.ensureSegments(
                    current,
                    requireIncarnation(current),
                    requireStreamId(current, batch.stream()),
                    batch.target().partition(),
                    batch.events().size()));
        } while (added > 0);
    }

    /** Tells consumers that the partitions of some batches have new events. */
    void signal(String sender, Collection<EventBatch> batches) throws SQLException {
        transaction(current -> {
            List<String> changes = new ArrayList<>();
            for (EventBatch batch : batches) {
                changes.add(requireStreamId(current, batch.stream()) + ":"
                        + batch.target().partition());
            }
            sql.signal(current, sender, changes);
            return true;
        });
    }

    private String requireIncarnation(Connection current) throws SQLException {
        String known = incarnation;
        if (known == null) {
            known = sql.findIncarnation(current);
            if (known == null) {
                throw new SQLException(
                        "The database is being restored, or was restored or copied and the library has not opened it since;"
                                + " open it, or call declare_restored",
                        "57P03");
            }
            incarnation = known;
        }
        return known;
    }

    private int requireStreamId(Connection current, String name) throws SQLException {
        Integer known = streamIds.get(name);
        if (known == null) {
            known = sql.findStream(current, name).orElseThrow(() -> missing(name));
            streamIds.put(name, known);
        }
        return known;
    }

    private static WrongDatabaseException missing(String stream) {
        return new WrongDatabaseException("Stream " + stream + " does not exist there");
    }

    private Identity requireIdentity(Connection current) throws SQLException {
        Identity found = sql.findIdentity(current)
                .orElseThrow(
                        () -> new WrongDatabaseException("A database is no shard yet: the library has not opened it"));
        if (found.schemaVersion() < SCHEMA_VERSION_MIN) {
            throw new WrongDatabaseException("The schema of shard " + found.shard() + " has version "
                    + found.schemaVersion() + ", but the sink needs " + SCHEMA_VERSION_MIN
                    + " or later; open it with a later release first");
        }
        Identity known = identity;
        if (known != null && (!known.isSameCluster(found) || known.shard() != found.shard())) {
            throw new WrongDatabaseException("A database was shard " + known.shard() + " of cluster " + known.cluster()
                    + ", and is now shard " + found.shard() + " of cluster " + found.cluster());
        }
        identity = found;
        return found;
    }

    private <T> T transaction(Work<T> work) throws SQLException {
        Connection current = connection();
        boolean isCommitted = false;
        try {
            try (Statement statement = current.createStatement()) {
                statement.execute(begin);
            }
            T result = work.run(current);
            current.clearWarnings();
            current.commit();
            isCommitted = true;
            SinkErrors.requireNoDoubt(current.getWarnings());
            return result;
        } catch (SQLException e) {
            if (SinkErrors.isReadOnly(e)) { // a new connection may lead to the primary
                close();
            }
            throw e;
        } finally {
            if (!isCommitted) {
                rollback(current);
            }
        }
    }

    private void rollback(Connection current) {
        try {
            current.rollback();
        } catch (SQLException e) { // it is broken: the first error is the one to report
            close();
        }
    }

    private Connection connection() throws SQLException {
        Connection present = connection;
        if (present != null) {
            return present;
        }
        Connection opened = dataSource.getConnection();
        connection = opened;
        boolean isUsable = false;
        try {
            opened.setNetworkTimeout(SAME_THREAD, networkTimeoutMs);
            opened.setAutoCommit(false);
            if (identity != null) { // a failover may have led to another database
                transaction(this::requireIdentity);
            }
            isUsable = true;
            return opened;
        } finally {
            if (!isUsable) {
                close();
            }
        }
    }

    /** Closes the connection, which a later call opens again. */
    @Override
    public void close() {
        Connection closed = connection;
        connection = null;
        if (closed != null) {
            try {
                closed.abort(SAME_THREAD);
                closed.close();
            } catch (SQLException e) {
                return; // it is closed
            }
        }
    }
}
