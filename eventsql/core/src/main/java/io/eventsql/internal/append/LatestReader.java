package io.eventsql.internal.append;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.UndecodableEventException;
import io.eventsql.UnknownStreamException;
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
 * outdated. So may the shard be. But while a stream has compaction, one shard has all events of a key; so the shard is only asked
 * whether the key belongs to it if it has none. Thread-safe.
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

    /** Where a key is searched: on a shard, by a slot of the stream's maps. */
    private record Target(StreamSpec stream, Shard shard, int slot, String key) {}

    /** See {@link io.eventsql.EventSql#latest}. */
    public Optional<StoredEvent> latest(String name, String key) {
        validator.validate(name, Event.tombstone(key));
        Target target = target(streams.require(name), key);
        @Nullable Row row = find(target);
        while (row == null) {
            Target current = confirm(target);
            if (current.equals(target)) {
                return Optional.empty();
            }
            target = current;
            row = find(target);
        }
        if (row.valueState() == ValueState.TOMBSTONE) {
            return Optional.empty();
        }
        EventPosition position = new EventPosition(name, target.shard().number(), row.partition(), row.offset());
        return Optional.of(new StoredEvent(
                position, key, row.valueOrEmpty(), headers(position, row), row.publishedAt(), row.valueState()));
    }

    private Target target(StreamSpec stream, String key) {
        long hash = KeyHash.of(key);
        return new Target(
                stream,
                shards.ofSlot(stream.name(), KeyHash.slot(hash)),
                PartitionMap.slot(hash, stream.partitions()),
                key);
    }

    /**
     * Returns where a key is to be searched that was not found, as its shard says: the stream may have been deleted, or created anew.
     *
     * @throws UnknownStreamException if it was deleted
     */
    private Target confirm(Target searched) {
        String name = searched.stream().name();
        try {
            if (searched.shard().streams().readId(searched.stream()).isEmpty()) {
                streams.requireCurrent(name); // or the shard was unavailable when it was created
            }
        } catch (SQLException e) {
            boolean isCreatedAnew =
                    SqlErrors.state(e).equals(SqlErrors.NO_PARTITION); // then the registry has forgotten it
            if (!isCreatedAnew) {
                throw refused(e, searched);
            }
        }
        return target(streams.require(name), searched.key());
    }

    /**
     * Searches in several statements if there are many segments. Then the event may have been superseded and removed before
     * the search reached it: it was superseded by a later one, so what lies above the first head is searched, too.
     */
    private @Nullable Row find(Target target) {
        @Nullable Row found = null;
        @Nullable Place from = null;
        @Nullable Place below = null;
        @Nullable Place head = null;
        while (true) {
            Search search;
            try {
                search = search(target, from, below);
            } catch (SQLException e) {
                if (SqlErrors.state(e).equals(SqlErrors.NO_PARTITION)) {
                    return null; // the shard does not have the stream, or another one of this name
                }
                throw refused(e, target);
            }
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

    private static Search search(Target target, @Nullable Place from, @Nullable Place below) throws SQLException {
        Shard shard = target.shard();
        return shard.require()
                .call(c -> shard.tables()
                        .latest()
                        .find(c, target.stream().name(), target.slot(), target.key(), from, below, SEGMENTS_MAX));
    }

    private static Map<String, String> headers(EventPosition position, Row row) {
        String json = row.headers();
        try {
            return json == null ? Map.of() : HeadersJson.decode(json);
        } catch (IllegalArgumentException e) {
            throw new UndecodableEventException(position, json, e);
        }
    }

    private static RuntimeException refused(SQLException e, Target target) {
        String stream = target.stream().name();
        return SqlErrors.state(e).equals(SqlErrors.NO_COMPACTION)
                ? new InvalidInputException(
                        "stream",
                        "must have compaction, whose index of keys finds the last event, but " + stream
                                + " has none: see StreamSpec.withCompaction and EventSql.alterStream")
                : new EventSqlException(
                        "Reading the last event of key " + target.key() + " of stream " + stream + " on "
                                + target.shard() + " failed: " + e.getMessage(),
                        e);
    }
}
