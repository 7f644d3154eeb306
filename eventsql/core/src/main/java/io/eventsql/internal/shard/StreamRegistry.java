package io.eventsql.internal.shard;

import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import io.eventsql.internal.sql.StreamTable;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The streams of the cluster. Streams that were read are cached, because a stream never changes. Thread-safe. */
public final class StreamRegistry {
    private static final Logger LOG = LoggerFactory.getLogger(StreamRegistry.class);

    private final Shards shards;
    private final Map<String, StreamSpec> known = new ConcurrentHashMap<>();

    public StreamRegistry(Shards shards) {
        this.shards = shards;
        shards.all().forEach(shard -> shard.addAnchors(this::forgetVanished));
    }

    /**
     * Forgets the streams that neither the shard nor another one has any more: publishing to them fails, as to any unknown
     * stream. A stream that only this shard has lost is created there again.
     */
    private Runnable forgetVanished(Shard shard) throws SQLException {
        Set<String> stored = new HashSet<>();
        shard.require()
                .read(c -> shard.tables().streams().findAll(c))
                .forEach(row -> stored.add(row.spec().name()));
        List<String> missing =
                known.keySet().stream().filter(name -> !stored.contains(name)).toList();
        List<String> vanished =
                missing.stream().filter(name -> !mayExistElsewhere(name, shard)).toList();
        vanished.forEach(name -> {
            known.remove(name);
            shards.all().forEach(each -> each.recordVanished(name));
        });
        return () -> {
            for (String name : missing) {
                if (vanished.contains(name)) {
                    LOG.error(
                            "Stream {} no longer exists on {}: the database was restored to a time before it",
                            name,
                            shard);
                } else {
                    LOG.error("Stream {} no longer exists on {}; it is created again when it is used", name, shard);
                }
            }
        };
    }

    private boolean mayExistElsewhere(String stream, Shard without) {
        for (Shard shard : shards.all()) {
            if (shard == without) {
                continue;
            }
            try {
                if (!shard.isHealthy() || shard.findStream(stream).isPresent()) {
                    return true;
                }
            } catch (SQLException e) {
                LOG.debug("Stream {} may exist on {}, which is unavailable", stream, shard, e);
                return true;
            }
        }
        return false;
    }

    /**
     * Creates the stream on every shard that does not have it. A shard that is unavailable gets an existing stream as
     * soon as it is back.
     *
     * @throws InvalidInputException if the stream exists with other values
     * @throws EventSqlException if the stream is new and a shard is unavailable; retry the call
     */
    public void create(StreamSpec stream) {
        boolean existed = false;
        @Nullable SQLException failure = null;
        @Nullable Shard failed = null;
        for (Shard shard : shards.all()) {
            try {
                Optional<StreamTable.Row> existing = shard.findStream(stream.name());
                existing.ifPresent(row -> requireSame(stream, row.spec()));
                existed |= existing.isPresent();
                requireSame(stream, shard.createStream(stream).spec());
            } catch (SQLException e) {
                failure = e;
                failed = shard;
            }
        }
        if (failure != null && !existed) {
            throw new EventSqlException(
                    "Stream " + stream.name() + " could not be created on " + failed + ": " + failure.getMessage(),
                    failure);
        }
        if (failure != null) {
            LOG.warn("Shard {} is unavailable; it gets stream {} when it is back", failed, stream.name());
        }
        known.put(stream.name(), stream);
    }

    private static void requireSame(StreamSpec requested, StreamSpec existing) {
        requireSame("stream.partitions", requested.name(), requested.partitions(), existing.partitions());
        requireSame("stream.segmentSize", requested.name(), requested.segmentSize(), existing.segmentSize());
        requireSame("stream.json", requested.name(), requested.json(), existing.json());
    }

    private static void requireSame(String field, String stream, Object requested, Object existing) {
        if (!requested.equals(existing)) {
            throw new InvalidInputException(
                    field, "of the existing stream " + stream + " is " + existing + " and cannot become " + requested);
        }
    }

    /**
     * Returns the stream of that name.
     *
     * @throws UnknownStreamException if there is none
     * @throws EventSqlException if no shard is available
     */
    public StreamSpec require(String name) {
        try {
            return require(name, valid -> Optional.empty());
        } catch (SQLException e) {
            throw new IllegalStateException("no connection was used", e);
        }
    }

    /** Looks up a stream by its name. */
    @FunctionalInterface
    public interface Lookup {
        Optional<StreamSpec> find(String name) throws SQLException;
    }

    /**
     * Returns the stream of that name as {@link #require(String)} does, but queries {@code first} before the shards: a
     * caller that holds a connection already may not get a second one.
     *
     * @throws SQLException if {@code first} fails
     */
    public StreamSpec require(String name, Lookup first) throws SQLException {
        StreamSpec stream = known.get(name);
        if (stream != null) {
            return stream;
        }
        if (!isValidName(name)) {
            throw new UnknownStreamException(name);
        }
        Optional<StreamSpec> found = first.find(name);
        if (found.isPresent()) {
            known.put(name, found.get());
            return found.get();
        }
        @Nullable SQLException failure = null;
        boolean answered = false;
        for (Shard shard : shards.all()) {
            try {
                Optional<StreamTable.Row> row = shard.findStream(name);
                answered = true;
                if (row.isPresent()) {
                    known.put(name, row.get().spec());
                    return row.get().spec();
                }
            } catch (SQLException e) {
                failure = e;
            }
        }
        if (!answered) {
            throw new EventSqlException("Stream " + name + " could not be read: no shard is available", failure);
        }
        throw new UnknownStreamException(name);
    }

    /** Forgets a stream because a shard does not have it: it may have been dropped. */
    public void forget(String name) {
        known.remove(name);
    }

    /** Returns whether the name is valid: the databases are queried only for those. */
    private static boolean isValidName(String name) {
        try {
            return StreamSpec.of(name).name().equals(name);
        } catch (InvalidInputException e) {
            LOG.debug("Invalid stream name", e);
            return false;
        }
    }

    /** Returns all streams, by name. */
    public List<StreamSpec> all() {
        Map<String, StreamSpec> streams = new TreeMap<>();
        @Nullable SQLException failure = null;
        for (Shard shard : shards.all()) {
            try {
                List<StreamTable.Row> rows =
                        shard.require().read(c -> shard.tables().streams().findAll(c));
                rows.forEach(row -> streams.put(row.spec().name(), row.spec()));
            } catch (SQLException e) {
                failure = e;
            }
        }
        if (failure != null && streams.isEmpty()) {
            throw new EventSqlException("The streams could not be read: " + failure.getMessage(), failure);
        }
        return new ArrayList<>(streams.values());
    }
}
