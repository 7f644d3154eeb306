package io.eventsql.internal.shard;

import io.eventsql.ShardInfo;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.NotSentException;
import io.eventsql.internal.sql.ShardIdentity;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One shard of the cluster. Borrowing a connection fails until its database has been reached for the first time.
 * Thread-safe.
 */
public final class Shard implements ShardStreams.Owner {
    private static final Logger LOG = LoggerFactory.getLogger(Shard.class);
    private static final long PROBE_INTERVAL_MS = 1_000;
    private static final int PROBE_TIMEOUT_SECONDS = 5;
    private static final long TERMINATION_NANOS_MAX = TimeUnit.SECONDS.toNanos(2);

    private final int number;
    private volatile String name;
    private final UUID clusterId;
    private final Tables tables;
    private final ShardStreams streams;

    /** What the database has said last about itself and the slots. */
    private volatile ShardIdentity identity;

    private volatile Consumer<Shard> slotsListener = shard -> {};

    private volatile boolean configured = true;

    private final ShardOpener opener;
    private final Incarnation incarnation = new Incarnation(this);
    private volatile @Nullable Database database;
    private final AtomicBoolean healthy = new AtomicBoolean(true);
    private volatile @Nullable SQLException lastFailure;
    private final ScheduledThreadPoolExecutor background;

    Shard(ShardIdentity identity, int number, ShardOpener opener, Tables tables) {
        this.number = number;
        this.opener = opener;
        this.name = identity.names().get(number);
        this.clusterId = identity.clusterId();
        // Nothing is known of the shard itself, which gets no events before it is attached.
        this.identity = new ShardIdentity(
                clusterId,
                number,
                name,
                identity.names(),
                identity.databaseIds(),
                identity.finishedMap(),
                identity.finishedVersion(),
                null,
                identity.unused());
        this.tables = tables;
        this.streams = new ShardStreams(this, tables);
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

    /** Returns the version of the slot map that the database has, as far as this process knows. */
    @Override
    public int mapVersion() {
        return identity.mapVersion();
    }

    /** Returns what the database has said last about itself and the slots. */
    ShardIdentity identity() {
        return identity;
    }

    /** Returns whether this process was given the database. Other shards get no events of it, and it consumes nothing of them. */
    public boolean isConfigured() {
        return configured;
    }

    void setConfigured(boolean value) {
        configured = value;
    }

    /** @param listener is called when the database has said something new about the slots, before a map of a stream is replaced */
    void onSlots(Consumer<Shard> listener) {
        slotsListener = listener;
    }

    /** Remembers what the database has said about the slots, unless something later is known. */
    @Override
    public synchronized void learn(int version, int[] slotMap, int @Nullable [] former) {
        ShardIdentity known = identity;
        boolean isNewer = version > known.mapVersion()
                || (version == known.mapVersion() && former == null && known.formerSlotMap() != null);
        if (isNewer) {
            identity = new ShardIdentity(
                    clusterId,
                    number,
                    known.name(),
                    known.names(),
                    known.databaseIds(),
                    slotMap,
                    version,
                    former,
                    known.unused());
            slotsListener.accept(this);
        }
    }

    /** Remembers what the database has said about the slots. */
    void learn(ShardIdentity read) {
        learn(read.mapVersion(), read.slotMap(), read.formerSlotMap());
    }

    /** Reads what the database says about the slots now. */
    public void readSlots() throws SQLException {
        require().read(c -> tables.shards().find(c)).ifPresent(this::learn);
    }

    /** The statements, written for the schema of this instance. */
    public Tables tables() {
        return tables;
    }

    /** Returns whether the last append reached the shard. Events without a key are routed to healthy shards. */
    public boolean isHealthy() {
        return healthy.get() && database != null;
    }

    public void setHealthy(boolean value) {
        boolean before = healthy.getAndSet(value); // at once, or a probe that succeeds in between would be the last one
        if (value) {
            lastFailure = null;
        } else if (before) {
            inBackground(PROBE_INTERVAL_MS, this::probe);
        }
    }

    /** Finds out whether an unhealthy shard answers again: without events routed to it, no append would. */
    private void probe() {
        try {
            boolean answers = require().call(connection -> connection.isValid(PROBE_TIMEOUT_SECONDS));
            if (answers) {
                setHealthy(true);
            }
        } catch (SQLException e) {
            LOG.debug("Shard {} is still unavailable; probing again in {} ms", name, PROBE_INTERVAL_MS, e);
        } finally { // also when a data source throws something else
            if (!healthy.get()) {
                inBackground(PROBE_INTERVAL_MS, this::probe);
            }
        }
    }

    /** Records why the last append failed: the reason given to calls that reach their deadline. */
    public void recordFailure(SQLException failure) {
        lastFailure = failure;
    }

    /** Returns why the last append failed; {@code null} if it did not. */
    public @Nullable SQLException lastFailure() {
        return lastFailure;
    }

    /** Runs a task on the shard's one background thread: adding segments, retrying what an unavailable shard failed. */
    public void inBackground(Runnable task) {
        inBackground(0, task);
    }

    /** Runs a task on the background thread after a delay; does nothing once the library is being closed. */
    public void inBackground(long delayMs, Runnable task) {
        try {
            background
                    .schedule(
                            () -> {
                                try {
                                    task.run();
                                } catch (Throwable e) { // an Error would otherwise disappear in the task's future
                                    LOG.error("Background task of shard {} failed; continuing with others", name, e);
                                }
                            },
                            delayMs,
                            TimeUnit.MILLISECONDS)
                    .state();
        } catch (RejectedExecutionException e) {
            LOG.debug("Background task dropped: shard {} is being closed", name, e);
        }
    }

    /** Stops the background thread after its current task. */
    void stopBackground() {
        background.shutdownNow();
    }

    /** Waits briefly for the current background task, because the user may close the pool next. */
    void awaitBackgroundStop(long deadlineNanos) {
        long waitNanos = Math.min(deadlineNanos - System.nanoTime(), TERMINATION_NANOS_MAX);
        try {
            if (!background.awaitTermination(waitNanos, TimeUnit.NANOSECONDS)) {
                LOG.warn("Background task of shard {} is still running; closing without it", name);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Returns the database; empty until it has been reached for the first time. */
    public Optional<Database> database() {
        return Optional.ofNullable(database);
    }

    /**
     * @param givenName the name by which this process knows the shard
     * @param stored what the database says about itself
     * @param found the incarnation of the database
     */
    void attach(Database reached, String givenName, ShardIdentity stored, String found) {
        name = givenName;
        incarnation.begin(found);
        database = reached; // only shards that have been reached have a say in whose the slots are
        learn(stored.mapVersion(), stored.slotMap(), stored.formerSlotMap());
    }

    /**
     * Returns the incarnation of the database, to be passed to statements that depend on something remembered of it. Read
     * it before the ids that a statement depends on.
     *
     * @throws NotSentException if the database is not open
     */
    public String incarnation() throws NotSentException {
        return incarnation.current();
    }

    /**
     * Finds out the incarnation after the database has rejected a statement because of it ({@link
     * SqlErrors#OTHER_INCARNATION}), and compares everything remembered with the database.
     *
     * @param rejected the incarnation passed to the rejected statement
     * @throws SQLException if the database is unavailable, is being restored, or was restored to a schema that is too old; repeat
     *     the call later
     */
    public void recheckIncarnation(String rejected) throws SQLException {
        incarnation.recheck(rejected);
    }

    /**
     * Does {@link #recheckIncarnation} if that is why a statement failed.
     *
     * @param used the incarnation passed to the statement
     * @return whether that is why it failed
     */
    public boolean recheckAfter(Throwable failure, String used) throws SQLException {
        if (!SqlErrors.isOtherIncarnation(failure)) {
            return false;
        }
        recheckIncarnation(used);
        return true;
    }

    /** Has something remembered of this shard compared with its database when that has another incarnation. */
    public void addAnchors(Anchors anchors) {
        incarnation.add(anchors);
    }

    /**
     * Returns the database.
     *
     * @throws NotSentException if the database is not open, with the reasons
     */
    @Override
    public Database require() throws NotSentException {
        Database current = database;
        if (current == null) {
            throw notOpen();
        }
        return current;
    }

    /** Returns the error of work for a database that is not open. Of several such databases, it is not known which is this shard. */
    NotSentException notOpen() {
        if (!configured) {
            return new NotSentException("shard " + name + " is not among the data sources of this process");
        }
        String reasons = opener.failures().text();
        return new NotSentException("shard " + name + " is not open" + (reasons.isEmpty() ? "" : ": " + reasons));
    }

    /** Returns the SQL files of the library that the database lacks. */
    List<String> missingFiles() throws SQLException {
        return opener.missingFiles(require());
    }

    /**
     * Returns the public description of the shard.
     *
     * @throws NotSentException if the database is not open
     */
    public ShardInfo info() throws NotSentException {
        return new ShardInfo(number, name, require().dataSource());
    }

    /** The streams that this shard has. */
    public ShardStreams streams() {
        return streams;
    }

    /** Forgets a stream that this process has deleted. */
    public void forgetDeletedStream(String stream) {
        streams.forget(stream);
        incarnation.forget(stream);
    }

    @Override
    public String toString() {
        return name;
    }
}
