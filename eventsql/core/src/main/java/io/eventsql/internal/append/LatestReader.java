package io.eventsql.internal.append;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.UndecodableEventException;
import io.eventsql.ValueState;
import io.eventsql.internal.shard.KeyHash;
import io.eventsql.internal.shard.PartitionMap;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.HeadersJson;
import io.eventsql.internal.sql.LatestFunction.Place;
import io.eventsql.internal.sql.LatestFunction.Row;
import io.eventsql.internal.sql.LatestFunction.Search;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Reads the last event of a key. Which partitions are searched is decided in the database: the map that this process knows may be
 * outdated. Thread-safe.
 */
public final class LatestReader {
    /** The number of segments of one statement, which locks each of them. */
    private static final int SEGMENTS_MAX = 64;

    private final StreamRegistry streams;
    private final EventValidator validator;
    private final Shards shards;

    public LatestReader(Shards shards, StreamRegistry streams, Settings settings) {
        this.streams = streams;
        this.validator = new EventValidator(settings);
        this.shards = shards;
    }

    /** See {@link io.eventsql.EventSql#latest}. */
    public Optional<StoredEvent> latest(String name, String key) {
        validator.validate(name, Event.tombstone(key));
        StreamSpec stream = streams.require(name);
        long hash = KeyHash.of(key);
        Shard shard = shards.ofSlot(name, KeyHash.slot(hash));
        @Nullable Row row;
        try {
            boolean exists = shard.streams().readId(stream).isPresent();
            while (shard != shards.ofSlot(name, KeyHash.slot(hash))) { // it has said that the key belongs elsewhere
                shard = shards.ofSlot(name, KeyHash.slot(hash));
                exists = shard.streams().readId(stream).isPresent();
            }
            if (!exists) {
                streams.requireCurrent(name); // which was deleted, or the shard was unavailable when it was created
                return Optional.empty();
            }
            row = find(shard, stream, PartitionMap.slot(hash, stream.partitions()), key);
        } catch (SQLException e) {
            throw refused(e, stream, key, shard);
        }
        if (row == null || row.valueState() == ValueState.TOMBSTONE) {
            return Optional.empty();
        }
        EventPosition position = new EventPosition(name, shard.number(), row.partition(), row.offset());
        return Optional.of(new StoredEvent(
                position, key, row.valueOrEmpty(), headers(position, row), row.publishedAt(), row.valueState()));
    }

    /**
     * Searches in several statements if there are many segments. Then the event may have been superseded and removed before
     * the search reached it: it was superseded by a later one, so what lies above the first head is searched, too.
     */
    private @Nullable Row find(Shard shard, StreamSpec stream, int slot, String key) throws SQLException {
        @Nullable Row found = null;
        @Nullable Place from = null;
        @Nullable Place below = null;
        @Nullable Place head = null;
        while (true) {
            @Nullable Place searchFrom = from;
            @Nullable Place searchBelow = below;
            Search search = shard.require()
                    .call(c -> shard.tables()
                            .latest()
                            .find(c, stream.name(), slot, key, searchFrom, searchBelow, SEGMENTS_MAX));
            boolean isFirst = below == null;
            if (isFirst) {
                head = search.head();
            }
            if (search.event() != null) {
                found = search.event();
            }
            if (search.event() == null && search.continueBelow() != null) {
                below = search.continueBelow();
            } else if (isFirst) {
                return found; // one statement has searched all
            } else {
                from = head;
                below = null;
            }
        }
    }

    private static Map<String, String> headers(EventPosition position, Row row) {
        String json = row.headers();
        try {
            return json == null ? Map.of() : HeadersJson.decode(json);
        } catch (IllegalArgumentException e) {
            throw new UndecodableEventException(position, json, e);
        }
    }

    private static RuntimeException refused(SQLException e, StreamSpec stream, String key, Shard shard) {
        return switch (SqlErrors.state(e)) {
            case SqlErrors.NO_COMPACTION ->
                new InvalidInputException(
                        "stream",
                        "must have compaction, whose index of keys finds the last event, but " + stream.name()
                                + " has none: see StreamSpec.withCompaction and EventSql.alterStream");
            default ->
                new EventSqlException(
                        "Reading the last event of key " + key + " of stream " + stream.name() + " on " + shard
                                + " failed: " + e.getMessage(),
                        e);
        };
    }
}
