package io.eventsql.internal.shard;

import io.eventsql.ShardInfo;
import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.MissingPrivilegeException;
import io.eventsql.internal.sql.NotSentException;
import io.eventsql.internal.sql.ShardIdentity;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.sql.StreamTable;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One shard of the cluster. Borrowing a connection fails until its database has been reached for the first time.
 * Thread-safe.
 */
public final class Shard {
    private static final Logger LOG = LoggerFactory.getLogger(Shard.class);
    /** The versions of a stream's maps that belong to one slot map; see next_map_version_v1. */
    private static final int CLUSTER_VERSION_SHIFT = 16;

    private static final long PROBE_INTERVAL_MS = 1_000;
    private static final int PROBE_TIMEOUT_SECONDS = 5;
    private static final int PARTITIONS_PER_TRANSACTION = 20;
    private static final long TERMINATION_NANOS_MAX = TimeUnit.SECONDS.toNanos(2);

    private final int number;
    private volatile String name;
    private final UUID clusterId;
    private final Tables tables;
    private final Map<String, Integer> streamIds = new ConcurrentHashMap<>();
    /** As last read; a stream that was not read yet is believed not to have grown, which an append finds out. */
    private final Map<String, PartitionMap> maps = new ConcurrentHashMap<>();
    /** Finds streams that this shard does not have. */
    private volatile OtherShards otherShards = Optional::of;

    /** What the database has said last about itself and the slots. */
    private volatile ShardIdentity identity;

    private volatile Consumer<Shard> slotsListener = shard -> {};
    private volatile BiConsumer<Shard, StreamTable.Row> streamListener = (shard, row) -> {};
    /** Called with the name of a stream that has other partitions than is remembered. */
    private volatile Consumer<String> createdAnewListener = name -> {};

    private volatile boolean configured = true;

    private final ShardOpener opener;
    private final Incarnation incarnation = new Incarnation(this);
    private volatile @Nullable Database database;
    private final AtomicBoolean healthy = new AtomicBoolean(true);
    private volatile @Nullable SQLException lastFailure;
    private final ScheduledThreadPoolExecutor background;

    /** The definitions of streams that the other shards of the cluster have. */
    @FunctionalInterface
    interface OtherShards {
        /**
         * Returns the stream of that name as they have it; empty if it was deleted: none of them has it.
         *
         * @throws SQLException if only an unavailable shard may have it
         */
        Optional<StreamSpec> find(StreamSpec remembered) throws SQLException;
    }

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

    /** @param listener is called with each stream that was read, before its map there is replaced */
    void onStream(BiConsumer<Shard, StreamTable.Row> listener) {
        streamListener = listener;
    }

    /** Remembers what the database has said about the slots, unless something later is known. */
    private synchronized void learn(int version, int[] slotMap, int @Nullable [] former) {
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

    /** The version that the map of a stream has which was created with the current slot map, until it grows or keys move. */
    private int firstVersion() {
        return firstVersion(identity.mapVersion());
    }

    private static int firstVersion(int clusterVersion) {
        return ((clusterVersion - 1) << CLUSTER_VERSION_SHIFT) + 1;
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

    /**
     * Returns the stream's id on this shard, remembered or read; empty if the shard does not have the stream, because it
     * was unavailable when the stream was created. Only for statements that take the incarnation, too.
     *
     * @throws SQLException {@link SqlErrors#NO_PARTITION} if the shard has a stream of this name with other partitions
     */
    public OptionalInt findStreamId(StreamSpec stream) throws SQLException {
        Integer known = streamIds.get(stream.name());
        return known != null ? OptionalInt.of(known) : readStreamId(stream);
    }

    /** Returns the stream's id as {@link #findStreamId} does, but reads it in any case. */
    public OptionalInt readStreamId(StreamSpec stream) throws SQLException {
        Optional<StreamTable.Row> row = findStream(stream.name());
        if (row.isEmpty()) {
            return OptionalInt.empty();
        }
        requireSamePartitions(stream, row.get().spec());
        streamIds.put(stream.name(), row.get().id());
        return OptionalInt.of(row.get().id());
    }

    /** Events that are routed by the former would be in wrong partitions of the latter. */
    private void requireSamePartitions(StreamSpec remembered, StreamSpec stored) throws SQLException {
        if (remembered.partitions() != stored.partitions()) {
            createdAnewListener.accept(remembered.name());
            throw SqlErrors.createdAnew();
        }
    }

    /**
     * Returns the stream's id on this shard, remembered or read. If this shard alone does not have the stream, creates it as it is
     * on the others now, which may differ from what the caller remembers.
     *
     * @throws UnknownStreamException if no shard has the stream: it was deleted, or the databases were restored
     * @throws SQLException {@link SqlErrors#NO_PARTITION} if this shard, or another one if it is to be created, has a stream of this
     *     name with other partitions; {@link NotSentException} if it is to be created, and an unavailable shard may have it
     */
    public int ensureStream(StreamSpec stream) throws SQLException {
        Integer known = streamIds.get(stream.name());
        if (known != null) {
            return known;
        }
        Optional<StreamTable.Row> stored = findStream(stream.name());
        if (stored.isPresent()) {
            requireSamePartitions(stream, stored.get().spec());
            return complete(stored.get()).id();
        }
        return complete(insertStream(findElsewhere(stream))).id();
    }

    /**
     * Returns the stream as {@link #ensureStream} does, but reads it in any case, and as it is stored on this shard, also with other
     * partitions.
     */
    public StreamTable.Row readOrCreateStream(StreamSpec stream) throws SQLException {
        Optional<StreamTable.Row> stored = findStream(stream.name());
        StreamTable.Row row = complete(stored.isPresent() ? stored.get() : insertStream(findElsewhere(stream)));
        if (row.spec().partitions() != stream.partitions()) {
            // Publishers know its id now: they must not route by the former one.
            createdAnewListener.accept(stream.name());
        }
        return row;
    }

    /** Returns a stream that this shard does not have, as the others have it. */
    private StreamSpec findElsewhere(StreamSpec stream) throws SQLException {
        StreamSpec stored = otherShards.find(stream).orElseThrow(() -> new UnknownStreamException(stream.name()));
        requireSamePartitions(stream, stored);
        return stored;
    }

    /** @param listener is called with the name of a stream that was created anew with other partitions */
    void onCreatedAnew(Consumer<String> listener) {
        createdAnewListener = listener;
    }

    /** @param others have the definitions of the streams that are to be created here */
    void createFrom(OtherShards others) {
        otherShards = others;
    }

    /** Forgets the ids and the maps of all streams. */
    void forgetStreams() {
        streamIds.clear();
        maps.clear();
    }

    /** Forgets the cached id and map of a stream, because the database rejected them. */
    public void forgetStream(String stream) {
        streamIds.remove(stream);
        maps.remove(stream);
    }

    /** Forgets a stream that this process has deleted. */
    public void forgetDeletedStream(String stream) {
        forgetStream(stream);
        incarnation.forget(stream);
    }

    /** Returns the number of partitions that a stream has on this shard now: growth adds some. */
    public int countPartitions(StreamSpec stream) throws SQLException {
        OptionalInt id = readStreamId(stream);
        return id.isEmpty()
                ? stream.partitions()
                : require().read(connection -> tables.partitions().count(connection, id.getAsInt()));
    }

    /** Returns the stream as stored on this shard, and remembers its map. */
    public Optional<StreamTable.Row> findStream(String stream) throws SQLException {
        Optional<StreamTable.Row> row =
                require().read(connection -> tables.streams().find(connection, stream));
        row.ifPresent(found -> {
            learnSlots(found); // first: a map counts only with the slots that the shard had when it was read
            remember(found);
        });
        return row;
    }

    /** Remembers where the keys of a stream belong, as it was read with the stream in this shard's database. */
    public void learnSlots(StreamTable.Row found) {
        streamListener.accept(this, found); // first: without this a stationary stream would move with the slots
        StreamTable.StoredSlots slots = found.slots();
        if (slots != null) {
            learn(slots.version(), ints(slots.slotMap()), slots.former() == null ? null : ints(slots.former()));
        }
    }

    static int[] ints(Short[] stored) {
        return Arrays.stream(stored).mapToInt(Short::intValue).toArray();
    }

    private void remember(StreamTable.Row row) {
        maps.merge(row.spec().name(), mapOf(row), (known, read) -> known.equals(read) ? known : read);
    }

    /** Returns where the keys of a stream belong, as stored on this shard. */
    public PartitionMap mapOf(StreamTable.Row row) {
        StreamTable.StoredMap stored = row.map();
        return stored == null
                ? PartitionMap.first(row.firstVersion(), row.spec().partitions())
                : PartitionMap.of(
                        stored.version(), stored.partitions(), stored.slots(), stored.moved(), stored.isPlacement());
    }

    /**
     * Returns where the keys of a stream belong on this shard, as far as this process knows: always the same object until the map
     * has changed. An append by an outdated map is rejected with {@link SqlErrors#MAP_VERSION}; {@link #findStream} then reads
     * the current one.
     */
    public PartitionMap map(StreamSpec stream) {
        PartitionMap known = maps.get(stream.name());
        if (known == null) {
            known = maps.computeIfAbsent(
                    stream.name(), name -> PartitionMap.first(firstVersion(), stream.partitions()));
        }
        return known.hasGrown() || known.partitions() == stream.partitions()
                ? known
                : PartitionMap.first(firstVersion(), stream.partitions()); // of a stream that was created anew
    }

    /**
     * Creates the stream with its tables and first segments, unless it exists; creates what an interrupted call has left
     * out.
     *
     * @return the stream as stored, which may differ from the given one
     */
    public StreamTable.Row createStream(StreamSpec stream) throws SQLException {
        Optional<StreamTable.Row> stored = findStream(stream.name());
        return complete(stored.isPresent() ? stored.get() : insertStream(stream));
    }

    /** Creates the partitions that a stored stream lacks, and remembers its id. */
    private StreamTable.Row complete(StreamTable.Row row) throws SQLException {
        createMissingPartitions(row);
        streamIds.put(row.spec().name(), row.id());
        return row;
    }

    /**
     * Changes all that can be changed of a stream; creates the stream if this shard alone does not have it.
     *
     * @throws UnknownStreamException if no shard has the stream
     * @throws SQLException {@link SqlErrors#NO_PARTITION} if the shard has a stream of this name with other partitions
     */
    public void alterStream(StreamSpec stream) throws SQLException {
        if (readStreamId(stream).isEmpty()) {
            readOrCreateStream(stream);
        }
        require().transaction(connection -> tables.streams().alter(connection, stream));
    }

    private StreamTable.Row insertStream(StreamSpec stream) throws SQLException {
        Database current = require();
        current.transaction(connection -> {
            current.allowLongStatements(connection); // creating tables takes time
            int clusterVersion = tables.streams().lockSlots(connection);
            tables.streams().create(connection, stream, firstVersion(clusterVersion));
            tables.streams().closeNew(connection, stream.name());
            return stream;
        });
        return findStream(stream.name()).orElseThrow(() -> new UnknownStreamException(stream.name()));
    }

    /** In several transactions, because the server's lock table has no room for the tables of a large stream. */
    private void createMissingPartitions(StreamTable.Row row) throws SQLException {
        if (require().read(connection -> tables.streams().hasAllPartitions(connection, row.spec()))) {
            return; // the usual case, in which the role needs no right to create tables
        }
        Database current = require();
        int missing;
        try {
            do {
                missing = current.transaction(connection -> {
                    current.allowLongStatements(connection); // creating tables takes time
                    return tables.streams().createPartitions(connection, row.id(), PARTITIONS_PER_TRANSACTION);
                });
            } while (missing > 0);
        } catch (MissingPrivilegeException e) {
            LOG.warn(
                    "Partitions of stream {} on {} have no tables yet; publishers add those that they need: {}",
                    row.spec().name(),
                    name,
                    e.getMessage());
        }
    }

    @Override
    public String toString() {
        return name;
    }
}
