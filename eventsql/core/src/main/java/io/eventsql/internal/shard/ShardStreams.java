package io.eventsql.internal.shard;

import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.MissingPrivilegeException;
import io.eventsql.internal.sql.NotSentException;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.sql.StreamPendingException;
import io.eventsql.internal.sql.StreamTable;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The streams of one shard: their ids and where their keys belong, as far as this process remembers them, and how they are created
 * there. Thread-safe.
 */
public final class ShardStreams {
    private static final Logger LOG = LoggerFactory.getLogger(ShardStreams.class);
    /** The versions of a stream's maps that belong to one slot map; see next_map_version_v1. */
    private static final int CLUSTER_VERSION_SHIFT = 16;

    private static final int PARTITIONS_PER_TRANSACTION = 20;

    private final Owner owner;
    private final Tables tables;
    private final Map<String, Integer> streamIds = new ConcurrentHashMap<>();
    /** As last read; a stream that was not read yet is believed not to have grown, which an append finds out. */
    private final Map<String, PartitionMap> maps = new ConcurrentHashMap<>();
    /** Finds streams that this shard does not have. */
    private volatile OtherShards otherShards = Optional::of;

    private volatile Consumer<StreamTable.Row> listener = row -> {};
    /** Called with the name of a stream that has other partitions than is remembered. */
    private volatile Consumer<String> createdAnewListener = name -> {};

    ShardStreams(Owner owner, Tables tables) {
        this.owner = owner;
        this.tables = tables;
    }

    /** The shard that has the streams. */
    interface Owner {
        /**
         * Returns the database.
         *
         * @throws NotSentException if the database is not open, with the reasons
         */
        Database require() throws NotSentException;

        /** Returns the version of the slot map that the database has, as far as this process knows. */
        int mapVersion();

        /** Remembers what the database has said about the slots, unless something later is known. */
        void learn(int version, int[] slotMap, int @Nullable [] former);
    }

    /** The definitions of streams that the other shards of the cluster have. */
    @FunctionalInterface
    interface OtherShards {
        /**
         * Returns the stream of that name as they have it; empty if it was deleted: none of them has it.
         *
         * @throws StreamPendingException if only an unavailable shard may have it
         */
        Optional<StreamSpec> find(StreamSpec remembered) throws StreamPendingException;
    }

    /** @param listener is called with each stream that was read, before its map there is replaced */
    void onRead(Consumer<StreamTable.Row> listener) {
        this.listener = listener;
    }

    /**
     * Returns the stream's id on this shard, remembered or read; empty if the shard does not have the stream, because it
     * was unavailable when the stream was created. Only for statements that take the incarnation, too.
     *
     * @throws SQLException {@link SqlErrors#NO_PARTITION} if the shard has a stream of this name with other partitions
     */
    public OptionalInt findId(StreamSpec stream) throws SQLException {
        Integer known = streamIds.get(stream.name());
        return known != null ? OptionalInt.of(known) : readId(stream);
    }

    /** Returns the stream's id as {@link #findId} does, but reads it in any case. */
    public OptionalInt readId(StreamSpec stream) throws SQLException {
        Optional<StreamTable.Row> row = find(stream.name());
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
     *     name with other partitions; {@link StreamPendingException} if it is to be created, and an unavailable shard may have it
     */
    public int ensure(StreamSpec stream) throws SQLException {
        Integer known = streamIds.get(stream.name());
        if (known != null) {
            return known;
        }
        Optional<StreamTable.Row> stored = find(stream.name());
        if (stored.isPresent()) {
            requireSamePartitions(stream, stored.get().spec());
            return complete(stored.get()).id();
        }
        return complete(insert(findElsewhere(stream))).id();
    }

    /**
     * Returns the stream as {@link #ensure} does, but reads it in any case, and as it is stored on this shard, also with other
     * partitions.
     */
    public StreamTable.Row readOrCreate(StreamSpec stream) throws SQLException {
        Optional<StreamTable.Row> stored = find(stream.name());
        StreamTable.Row row = complete(stored.isPresent() ? stored.get() : insert(findElsewhere(stream)));
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
    void forgetAll() {
        streamIds.clear();
        maps.clear();
    }

    /** Forgets the cached id and map of a stream, because the database rejected them. */
    public void forget(String stream) {
        streamIds.remove(stream);
        maps.remove(stream);
    }

    /** Returns the number of partitions that a stream has on this shard now: growth adds some. */
    public int countPartitions(StreamSpec stream) throws SQLException {
        OptionalInt id = readId(stream);
        return id.isEmpty()
                ? stream.partitions()
                : owner.require().read(connection -> tables.partitions().count(connection, id.getAsInt()));
    }

    /** Returns the stream as stored on this shard, and remembers its map. */
    public Optional<StreamTable.Row> find(String stream) throws SQLException {
        Optional<StreamTable.Row> row =
                owner.require().read(connection -> tables.streams().find(connection, stream));
        row.ifPresent(found -> {
            learnSlots(found); // first: a map counts only with the slots that the shard had when it was read
            remember(found);
        });
        return row;
    }

    /** Remembers where the keys of a stream belong, as it was read with the stream in this shard's database. */
    public void learnSlots(StreamTable.Row found) {
        listener.accept(found); // first: without this a stationary stream would move with the slots
        StreamTable.StoredSlots slots = found.slots();
        if (slots != null) {
            owner.learn(slots.version(), ints(slots.slotMap()), slots.former() == null ? null : ints(slots.former()));
        }
    }

    static int[] ints(Short[] stored) {
        return Arrays.stream(stored).mapToInt(Short::intValue).toArray();
    }

    private void remember(StreamTable.Row row) {
        maps.merge(row.spec().name(), mapOf(row), (known, read) -> known.equals(read) ? known : read);
    }

    /** Returns where the keys of a stream belong, as stored on this owner. */
    public PartitionMap mapOf(StreamTable.Row row) {
        StreamTable.StoredMap stored = row.map();
        return stored == null
                ? PartitionMap.first(row.firstVersion(), row.spec().partitions())
                : PartitionMap.of(
                        stored.version(), stored.partitions(), stored.slots(), stored.moved(), stored.isPlacement());
    }

    /**
     * Returns where the keys of a stream belong on this shard, as far as this process knows: always the same object until the map
     * has changed. An append by an outdated map is rejected with {@link SqlErrors#MAP_VERSION}; {@link #find} then reads
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
    public StreamTable.Row create(StreamSpec stream) throws SQLException {
        Optional<StreamTable.Row> stored = find(stream.name());
        return complete(stored.isPresent() ? stored.get() : insert(stream));
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
    public void alter(StreamSpec stream) throws SQLException {
        if (readId(stream).isEmpty()) {
            readOrCreate(stream);
        }
        owner.require().transaction(connection -> tables.streams().alter(connection, stream));
    }

    private StreamTable.Row insert(StreamSpec stream) throws SQLException {
        Database current = owner.require();
        current.transaction(connection -> {
            current.allowLongStatements(connection); // creating tables takes time
            int clusterVersion = tables.streams().lockSlots(connection);
            tables.streams().create(connection, stream, firstVersion(clusterVersion));
            tables.streams().closeNew(connection, stream.name());
            return stream;
        });
        return find(stream.name()).orElseThrow(() -> new UnknownStreamException(stream.name()));
    }

    /** In several transactions, because the server's lock table has no room for the tables of a large stream. */
    private void createMissingPartitions(StreamTable.Row row) throws SQLException {
        if (owner.require().read(connection -> tables.streams().hasAllPartitions(connection, row.spec()))) {
            return; // the usual case, in which the role needs no right to create tables
        }
        Database current = owner.require();
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
                    owner,
                    e.getMessage());
        }
    }

    /** The version that the map of a stream has which was created with the current slot map, until it grows or keys move. */
    private int firstVersion() {
        return firstVersion(owner.mapVersion());
    }

    private static int firstVersion(int clusterVersion) {
        return ((clusterVersion - 1) << CLUSTER_VERSION_SHIFT) + 1;
    }
}
