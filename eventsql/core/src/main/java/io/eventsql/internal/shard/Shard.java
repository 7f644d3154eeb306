package io.eventsql.internal.shard;

import io.eventsql.ShardInfo;
import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.ShardIdentity;
import io.eventsql.internal.sql.StreamTable;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One shard of the cluster. Its database may not have been reachable yet: then borrowing a connection fails until it is
 * found. Thread-safe.
 */
public final class Shard {
    private static final Logger LOG = LoggerFactory.getLogger(Shard.class);
    private static final long PROBE_EVERY_MS = 1_000;
    private static final int PROBE_TIMEOUT_SECONDS = 5;
    private static final long BACKGROUND_END_NANOS_MAX = TimeUnit.SECONDS.toNanos(2);

    private final int number;
    private volatile String name;
    private final UUID clusterId;
    private final int mapVersion;
    private final Tables tables;
    private final Map<String, Integer> streamIds = new ConcurrentHashMap<>();
    private volatile @Nullable Database database;
    private volatile boolean healthy = true;
    private volatile @Nullable SQLException lastFailure;
    private final ScheduledThreadPoolExecutor background;

    Shard(ShardIdentity identity, int number, Tables tables) {
        this.number = number;
        this.name = identity.names().get(number);
        this.clusterId = identity.clusterId();
        this.mapVersion = identity.mapVersion();
        this.tables = tables;
        this.background = new ScheduledThreadPoolExecutor(1, task -> {
            Thread thread = new Thread(task, "eventsql-background-" + name);
            thread.setDaemon(true);
            return thread;
        });
        background.setKeepAliveTime(10, TimeUnit.SECONDS);
        background.allowCoreThreadTimeOut(true);
        background.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    }

    public int number() {
        return number;
    }

    public String name() {
        return name;
    }

    public UUID clusterId() {
        return clusterId;
    }

    public int mapVersion() {
        return mapVersion;
    }

    /** The statements, written for the schema of this instance. */
    public Tables tables() {
        return tables;
    }

    /** Whether the last append reached it: events without a key go elsewhere while it did not. */
    public boolean isHealthy() {
        return healthy && database != null;
    }

    public void setHealthy(boolean value) {
        boolean before = healthy;
        healthy = value;
        if (value) {
            lastFailure = null;
        } else if (before) {
            inBackground(PROBE_EVERY_MS, this::probe);
        }
    }

    /** A shard that gets no events because it did not answer must not stay without them when it does. */
    private void probe() {
        try {
            boolean answers = require().call(connection -> connection.isValid(PROBE_TIMEOUT_SECONDS));
            if (answers) {
                setHealthy(true);
            }
        } catch (SQLException e) {
            LOG.debug("{} still does not answer", name, e);
        } finally { // also when a data source throws something else
            if (!healthy) {
                inBackground(PROBE_EVERY_MS, this::probe);
            }
        }
    }

    /** Remembers why the last append failed: it explains the calls that reach their deadline. */
    public void failed(SQLException failure) {
        lastFailure = failure;
    }

    /** Why the last append failed; {@code null} if it did not. */
    public @Nullable SQLException lastFailure() {
        return lastFailure;
    }

    /** Runs what has time, on the shard's one background thread: adding segments, retrying what a dead shard refused. */
    public void inBackground(Runnable task) {
        inBackground(0, task);
    }

    /** The same, not before the delay has passed; does nothing once the library is being closed. */
    public void inBackground(long delayMs, Runnable task) {
        try {
            background
                    .schedule(
                            () -> {
                                try {
                                    task.run();
                                } catch (RuntimeException e) {
                                    LOG.error("Background work on {} failed", name, e);
                                }
                            },
                            delayMs,
                            TimeUnit.MILLISECONDS)
                    .state();
        } catch (RejectedExecutionException e) {
            LOG.debug("{} is being closed", name, e);
        }
    }

    /** Starts no further background work. */
    void endBackground() {
        background.shutdownNow();
    }

    /** Waits briefly for the background work in progress, because the user may close the pool next. */
    void awaitBackgroundEnd(long deadlineNanos) {
        long waitNanos = Math.min(deadlineNanos - System.nanoTime(), BACKGROUND_END_NANOS_MAX);
        try {
            if (!background.awaitTermination(waitNanos, TimeUnit.NANOSECONDS)) {
                LOG.warn("Background work on {} is still running", name);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** The database, once it was found to be this shard. */
    public Optional<Database> database() {
        return Optional.ofNullable(database);
    }

    /** @param givenName the name by which this process knows the shard */
    void found(Database foundDatabase, String givenName) {
        name = givenName;
        database = foundDatabase;
    }

    /**
     * The database.
     *
     * @throws SQLTransientConnectionException if the database has not been reached since this process started
     */
    public Database require() throws SQLTransientConnectionException {
        Database current = database;
        if (current == null) {
            throw new SQLTransientConnectionException("shard " + name + " has not been reachable yet", "08001");
        }
        return current;
    }

    /**
     * The shard as users see it.
     *
     * @throws SQLTransientConnectionException if the database has not been reached since this process started
     */
    public ShardInfo info() throws SQLTransientConnectionException {
        return new ShardInfo(number, name, require().dataSource());
    }

    /**
     * The stream's id on this shard.
     *
     * @throws UnknownStreamException if the shard does not have it
     */
    public int streamId(StreamSpec stream) throws SQLException {
        Integer known = streamIds.get(stream.name());
        if (known != null) {
            return known;
        }
        return createStream(stream).id();
    }

    /** Forgets what it knows of a stream: the database said otherwise. */
    public void forgetStream(String stream) {
        streamIds.remove(stream);
    }

    /** The stream as this shard's database has it. */
    public Optional<StreamTable.Row> findStream(String stream) throws SQLException {
        return require().call(connection -> tables.streams().find(connection, stream));
    }

    /**
     * Creates the stream with its tables and first segments, unless it is there.
     *
     * @return the stream as it is, which may differ from the one asked for
     */
    public StreamTable.Row createStream(StreamSpec stream) throws SQLException {
        Optional<StreamTable.Row> existing = findStream(stream.name());
        StreamTable.Row row = existing.isPresent()
                ? existing.get()
                : require().transaction(connection -> insertStream(connection, stream));
        streamIds.put(row.spec().name(), row.id());
        return row;
    }

    private StreamTable.Row insertStream(Connection connection, StreamSpec stream) throws SQLException {
        Optional<Integer> id = tables.streams().insert(connection, stream, mapVersion);
        if (id.isEmpty()) {
            // Another process was faster; its transaction has ended, or the insert would still wait for it.
            return tables.streams()
                    .find(connection, stream.name())
                    .orElseThrow(() -> new UnknownStreamException(stream.name()));
        }
        tables.segments().createStreamTables(connection, stream);
        for (int partition = 0; partition < stream.partitions(); partition++) {
            tables.segments().addSegment(connection, stream, partition, 0);
            tables.segments().addSegment(connection, stream, partition, 1);
        }
        return new StreamTable.Row(id.get(), stream);
    }

    @Override
    public String toString() {
        return name;
    }
}
