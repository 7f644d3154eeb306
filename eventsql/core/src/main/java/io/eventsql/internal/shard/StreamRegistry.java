package io.eventsql.internal.shard;

import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import io.eventsql.internal.sql.StreamTable;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The streams of the cluster. What it learned it keeps: a stream never changes. Thread-safe. */
public final class StreamRegistry {
    private static final Logger LOG = LoggerFactory.getLogger(StreamRegistry.class);

    private final Shards shards;
    private final Map<String, StreamSpec> known = new ConcurrentHashMap<>();

    public StreamRegistry(Shards shards) {
        this.shards = shards;
    }

    /**
     * Creates the stream on every shard, or finds that it is there. A shard that does not answer gets it when it is
     * back, if another shard had it already.
     *
     * @throws InvalidInputException if it exists with other values
     * @throws EventSqlException if it is new and a shard does not answer; repeat it then
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
            LOG.warn("Stream {} is not checked on {}, which does not answer", stream.name(), failed);
        }
        known.put(stream.name(), stream);
    }

    private static void requireSame(StreamSpec asked, StreamSpec existing) {
        requireSame("stream.partitions", asked.name(), asked.partitions(), existing.partitions());
        requireSame("stream.segmentSize", asked.name(), asked.segmentSize(), existing.segmentSize());
        requireSame("stream.json", asked.name(), asked.json(), existing.json());
    }

    private static void requireSame(String field, String stream, Object asked, Object existing) {
        if (!asked.equals(existing)) {
            throw new InvalidInputException(
                    field, "of the existing stream " + stream + " is " + existing + " and cannot become " + asked);
        }
    }

    /**
     * The stream of that name.
     *
     * @throws UnknownStreamException if there is none
     * @throws EventSqlException if no shard answers
     */
    public StreamSpec require(String name) {
        StreamSpec stream = known.get(name);
        if (stream != null) {
            return stream;
        }
        if (!isPossible(name)) {
            throw new UnknownStreamException(name);
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
            throw new EventSqlException("No shard answers when asked for stream " + name, failure);
        }
        throw new UnknownStreamException(name);
    }

    /** Whether a stream can have this name at all: only then is a database asked. */
    private static boolean isPossible(String name) {
        try {
            return StreamSpec.of(name).name().equals(name);
        } catch (InvalidInputException e) {
            LOG.debug("not a stream's name", e);
            return false;
        }
    }

    /** All streams, by name. */
    public List<StreamSpec> all() {
        Map<String, StreamSpec> streams = new TreeMap<>();
        @Nullable SQLException failure = null;
        for (Shard shard : shards.all()) {
            try {
                List<StreamTable.Row> rows =
                        shard.require().call(c -> shard.tables().streams().all(c));
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
