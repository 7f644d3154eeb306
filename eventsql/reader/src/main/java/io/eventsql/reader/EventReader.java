package io.eventsql.reader;

import io.eventsql.reader.ReaderSql.StreamRow;
import io.eventsql.reader.StreamPosition.Kind;
import java.lang.System.Logger.Level;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import javax.sql.DataSource;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Reads the streams of a cluster. Nothing is stored: the caller keeps the positions it has reached. Works on primary servers
 * and on read replicas, in read-only transactions, by polling. On a replica events appear when it has replayed them.
 *
 * <p>The data sources are those of all shards, in any order: each database knows which shard it is. The reader keeps one
 * connection to each, opened when it is needed and returned on {@link #close}. The role needs what {@code eventsql_reader}
 * has. Thread-safe; calls for the same shard run one after the other.
 */
public final class EventReader implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(EventReader.class.getName());
    private static final String APPLICATION_NAME = "eventsql-reader";

    private final ReaderSettings settings;
    private final ReaderSql sql;
    private final Shards shards;
    private final PageReader pages;

    private EventReader(List<? extends DataSource> dataSources, ReaderSettings settings) {
        this.settings = settings;
        this.sql = new ReaderSql(settings.schema());
        this.shards = new Shards(dataSources, sql, settings);
        this.pages = new PageReader(sql, settings);
    }

    /** Opens a reader with the default settings. See {@link #open(List, ReaderSettings)}. */
    public static EventReader open(List<? extends DataSource> dataSources) {
        return open(dataSources, ReaderSettings.defaults());
    }

    /**
     * Opens a reader.
     *
     * @param dataSources one for each shard of the cluster that has events, in any order. Some of the databases may be unavailable.
     * @throws ShardIdentityException if they are not the shards of one cluster
     * @throws DatabaseUnavailableException if none of the databases responds
     * @throws EventReaderException if a database has no schema of the library, an old one, or denies access
     */
    public static EventReader open(List<? extends DataSource> dataSources, ReaderSettings settings) {
        if (dataSources.isEmpty()) {
            throw new IllegalArgumentException("dataSources must not be empty");
        }
        EventReader reader = new EventReader(dataSources, settings);
        try {
            reader.shards.open();
            return reader;
        } catch (RuntimeException e) {
            reader.close();
            throw e;
        }
    }

    /**
     * Opens a reader of databases that have the same user and password. See {@link #open(List, ReaderSettings)}.
     *
     * @param urls a JDBC URL for each shard
     */
    public static EventReader connect(List<String> urls, String user, String password, ReaderSettings settings) {
        int timeoutSeconds =
                Math.toIntExact(Math.max(1, settings.networkTimeout().toSeconds()));
        List<DataSource> dataSources = new ArrayList<>();
        for (String url : urls) {
            PGSimpleDataSource dataSource = new PGSimpleDataSource();
            dataSource.setApplicationName(APPLICATION_NAME);
            dataSource.setTcpKeepAlive(true);
            dataSource.setSocketTimeout(timeoutSeconds); // until the connection is there; the network timeout follows
            dataSource.setUrl(url);
            dataSource.setUser(user);
            dataSource.setPassword(password);
            dataSources.add(dataSource);
        }
        return open(dataSources, settings);
    }

    /** Returns the number of shards, with those that have no events and whose databases were not given. */
    public int shards() {
        return shards.size();
    }

    /**
     * Returns the partitions of a stream on all shards with their log starts and heads, in the order of the partitions.
     *
     * @throws UnknownStreamException if the stream exists on no shard
     * @throws DatabaseUnavailableException if a shard does not respond
     */
    public List<PartitionRange> ranges(String stream) {
        List<PartitionRange> ranges = new ArrayList<>();
        for (int shard = 0; shard < shards(); shard++) {
            ranges.addAll(ranges(stream, shard));
        }
        if (ranges.isEmpty()) {
            throw new UnknownStreamException(stream);
        }
        return ranges;
    }

    /**
     * Returns the partitions of a stream on one shard, as {@link #ranges(String)} does; none if the stream does not exist
     * there, as on a shard that joined later.
     *
     * @param shard its number, from 0
     * @throws DatabaseUnavailableException if the shard does not respond
     * @throws ShardIdentityException if keys have moved to shards whose databases were not given
     */
    public List<PartitionRange> ranges(String stream, int shard) {
        if (shards.isOmitted(shard)) {
            return List.of();
        }
        return shards.require(shard).read("Reading the partitions of stream " + stream, transaction -> {
            sql.findIdentity(transaction.connection()).ifPresent(shards::learn);
            Optional<StreamRow> row = transaction.stream(stream);
            return row.isEmpty()
                    ? List.of()
                    : List.copyOf(sql.findRanges(transaction.connection(), transaction.incarnation(), shard, row.get())
                            .values());
        });
    }

    /**
     * Returns the offset that a position has in each partition of a stream, by partition.
     *
     * @throws UnknownStreamException if the stream exists on no shard
     * @throws DatabaseUnavailableException if a shard does not respond
     */
    public Map<StreamPartition, Long> offsets(String stream, StreamPosition position) {
        Map<StreamPartition, Long> offsets = new TreeMap<>();
        for (int shard = 0; shard < shards(); shard++) {
            offsets.putAll(offsets(stream, shard, position));
        }
        if (offsets.isEmpty()) {
            throw new UnknownStreamException(stream);
        }
        return Collections.unmodifiableMap(offsets);
    }

    /**
     * Returns the offset that a position has in each partition on one shard; none if the stream does not exist there.
     *
     * @param shard its number, from 0
     * @throws DatabaseUnavailableException if the shard does not respond
     */
    public Map<StreamPartition, Long> offsets(String stream, int shard, StreamPosition position) {
        Map<StreamPartition, Long> offsets = new TreeMap<>();
        for (PartitionRange range : ranges(stream, shard)) {
            offsets.put(range.partition(), offset(range, position));
        }
        return Collections.unmodifiableMap(offsets);
    }

    /**
     * Returns where reading starts in each partition of a stream, by partition: at the offset that {@link
     * #offsets(String, StreamPosition)} returns. A start at {@link StreamPosition#LATEST}, or at a time, has the event
     * before it: so a database that goes back in time before anything was read is recognised, too, unless that event was
     * not in the log.
     *
     * @throws UnknownStreamException if the stream exists on no shard
     * @throws DatabaseUnavailableException if a shard does not respond
     */
    public Map<StreamPartition, ReadPosition> starts(String stream, StreamPosition position) {
        boolean isAfterEvents = position.kind() == Kind.LATEST || position.kind() == Kind.TIME;
        Map<StreamPartition, ReadPosition> starts = new TreeMap<>();
        for (int shard = 0; shard < shards(); shard++) {
            Map<StreamPartition, Long> offsets = offsets(stream, shard, position);
            offsets.forEach((partition, offset) -> starts.put(partition, ReadPosition.at(offset)));
            if (isAfterEvents && !offsets.isEmpty()) {
                starts.putAll(afterEvents(stream, shard, offsets));
            }
        }
        if (starts.isEmpty()) {
            throw new UnknownStreamException(stream);
        }
        return Collections.unmodifiableMap(starts);
    }

    /** Returns the positions with the events before them; nothing if these cannot be read: a start after them may be to skip damage. */
    private Map<StreamPartition, ReadPosition> afterEvents(
            String stream, int shard, Map<StreamPartition, Long> offsets) {
        try {
            return shards.require(shard)
                    .read(
                            "Reading where stream " + stream + " starts",
                            transaction -> pages.positions(transaction, stream, offsets));
        } catch (DatabaseUnavailableException | UnknownStreamException e) {
            throw e;
        } catch (EventReaderException e) {
            LOG.log(Level.WARNING, "The events before the start of stream " + stream + " cannot be read", e);
            return Map.of();
        }
    }

    private long offset(PartitionRange range, StreamPosition position) {
        Instant time = position.time();
        if (time != null) {
            StreamPartition partition = range.partition();
            return shards.require(partition.shard())
                    .read(
                            "Looking for " + time + " in " + partition,
                            transaction -> sql.findOffset(transaction.connection(), partition, time));
        }
        return switch (position.kind()) {
            case EARLIEST -> range.logStart();
            case LATEST -> range.head();
            default -> position.offset();
        };
    }

    /**
     * Reads a page of one partition. See {@link #read(List)}.
     */
    public PartitionPage read(StreamPartition partition, ReadPosition position) {
        return read(List.of(new PageRequest(partition, position))).get(0);
    }

    /**
     * Reads a page of each of several partitions: one round trip for those of the same stream and shard. Returns at once:
     * a page at the head is empty. If a request fails, the call fails; the exception says which.
     *
     * <p>So is a page at offset 0 of a partition that the stream does not have, because a growth that was cancelled may
     * have added and removed it; one of a partition that a standby does not have yet; and one of a shard that was removed
     * and whose database was not given, because such a shard has no events.
     *
     * @return a page for each request, in their order
     * @throws OffsetOutOfRangeException if retention has removed the next event, or a position from elsewhere is not in the
     *     log
     * @throws EventsMissingException if the next event is missing from the log
     * @throws UndecodableEventException if the next event cannot be decoded
     * @throws HistoryLostException if the database has gone back in time to before a position
     * @throws UnknownStreamException if the stream does not exist, or lacks a partition of which a position is above 0
     * @throws EventReaderException if a shard was removed before the end of a request was reached
     * @throws DatabaseUnavailableException if the database does not respond; the call may be repeated
     */
    public List<PartitionPage> read(List<PageRequest> requests) {
        Map<StreamPartition, List<PageRequest>> groups = new LinkedHashMap<>();
        for (PageRequest request : requests) {
            StreamPartition any = request.partition();
            groups.computeIfAbsent(new StreamPartition(any.stream(), any.shard(), 0), key -> new ArrayList<>())
                    .add(request);
        }
        if (groups.size() == 1) {
            return readGroup(requests);
        }
        Map<PageRequest, PartitionPage> pagesOf = new LinkedHashMap<>();
        for (List<PageRequest> group : groups.values()) {
            List<PartitionPage> read = readGroup(group);
            for (int i = 0; i < read.size(); i++) {
                pagesOf.put(group.get(i), read.get(i));
            }
        }
        return requests.stream().map(pagesOf::get).toList();
    }

    private List<PartitionPage> readGroup(List<PageRequest> group) {
        StreamPartition any = group.get(0).partition();
        if (shards.isOmitted(any.shard())) {
            group.forEach(EventReader::requireEndReached);
            return group.stream().map(PageRequest::emptyPage).toList();
        }
        return shards.require(any.shard())
                .read(
                        "Reading stream " + any.stream(),
                        transaction -> pages.read(transaction, any.stream(), any.shard(), group));
    }

    /** Rejects a request whose end will not be reached: a shard that was removed has no events, and gets none. */
    private static void requireEndReached(PageRequest request) {
        long offset = request.position().offset();
        if (request.endOffset() != PageRequest.UNBOUNDED && offset < request.endOffset()) {
            throw new EventReaderException("Offsets [" + offset + ", " + request.endOffset() + ") of "
                    + request.partition() + " cannot be read: the shard was removed from the cluster");
        }
    }

    /**
     * Returns a cursor over a stream, which resolves its start and its end now.
     *
     * @throws UnknownStreamException if the stream exists on no shard
     * @throws DatabaseUnavailableException if a shard does not respond
     */
    public StreamCursor cursor(CursorSpec spec) {
        return StreamCursor.open(this, spec, settings.pollInterval());
    }

    /** Closes the connections, or returns them to their pools. A read that is in progress ends first. Idempotent. */
    @Override
    public void close() {
        shards.close();
    }
}
