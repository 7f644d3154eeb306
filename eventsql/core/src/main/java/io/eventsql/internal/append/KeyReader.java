package io.eventsql.internal.append;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.KeyEvents;
import io.eventsql.KeyTracking;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.UndecodableEventException;
import io.eventsql.internal.shard.KeyHash;
import io.eventsql.internal.shard.PartitionMap;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.HeadersJson;
import io.eventsql.internal.sql.KeyFunctions;
import io.eventsql.internal.sql.KeyFunctions.Page;
import io.eventsql.internal.sql.KeyFunctions.Row;
import io.eventsql.internal.sql.SqlErrors;
import java.nio.charset.CharacterCodingException;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Reads the version and the events of a key. Which partitions have the events is decided in the database, in the snapshot in
 * which they are read: the map that this process knows may be outdated. Thread-safe.
 */
public final class KeyReader {
    private final StreamRegistry streams;
    private final EventValidator validator;
    private final Shards shards;

    public KeyReader(Shards shards, StreamRegistry streams, Settings settings) {
        this.streams = streams;
        this.validator = new EventValidator(settings);
        this.shards = shards;
    }

    /** Where the events of a key are: those of a slot have the same partitions, one after the other. */
    private record Place(StreamSpec stream, Shard shard, int slot, int home, String key) {
        @FunctionalInterface
        private interface Query<T> {
            T read(Connection connection, KeyFunctions functions) throws SQLException;
        }

        /** Returns the result of a query; {@code null} if the shard was unavailable when the stream was created. */
        private <T> @Nullable T query(Query<T> query) {
            try {
                return shard.require()
                        .call(connection ->
                                query.read(connection, shard.tables().keys()));
            } catch (SQLException e) {
                if (SqlErrors.state(e).equals(SqlErrors.NO_KEY_TRACKING) && isMissing()) {
                    return null;
                }
                throw new EventSqlException(
                        "Reading key " + key + " of stream " + stream.name() + " on " + shard + " failed: "
                                + e.getMessage(),
                        e);
            }
        }

        private boolean isMissing() {
            try {
                return shard.streams().readId(stream).isEmpty();
            } catch (SQLException e) {
                return false;
            }
        }
    }

    private Place find(String name, String key, KeyTracking required) {
        validator.validate(name, Event.tombstone(key));
        return find(streams.require(name), key, required);
    }

    private Place find(StreamSpec stream, String key, KeyTracking required) {
        String name = stream.name();
        if (required == KeyTracking.VERSIONS) {
            EventValidator.requireKeyVersions(stream);
        } else if (stream.keyTracking() != KeyTracking.INDEX) {
            throw new InvalidInputException(
                    "stream",
                    "must have an index of keys, but " + name + " was created without: see StreamSpec.withKeyIndex");
        }
        long hash = KeyHash.of(key);
        return new Place(
                stream,
                shards.ofSlot(name, KeyHash.slot(hash)),
                PartitionMap.slot(hash, stream.partitions()),
                PartitionMap.home(hash, stream.partitions()),
                key);
    }

    /** See {@link io.eventsql.EventSql#keyVersion}. */
    public long version(String stream, String key) {
        Place place = find(stream, key, KeyTracking.VERSIONS);
        long version = version(place);
        Place current = version > 0 ? place : find(streams.requireCurrent(stream), key, KeyTracking.VERSIONS);
        return current.equals(place) ? version : version(current);
    }

    private static long version(Place place) {
        Long version = place.query(
                (c, functions) -> functions.version(c, place.stream().name(), place.home(), place.key()));
        return version == null ? 0 : version;
    }

    /**
     * See {@link io.eventsql.EventSql#readKey(String, String, EventPosition, int)}.
     *
     * @param maxBytes the page ends with the event that brings its keys, values and headers to this number of bytes
     */
    public KeyEvents read(String stream, String key, Optional<EventPosition> from, int maxEvents, long maxBytes) {
        Place place = find(stream, key, KeyTracking.INDEX);
        KeyEvents found = read(place, from, maxEvents, maxBytes);
        if (found.version() > 0 || !found.events().isEmpty()) {
            return found;
        }
        Place current = find(streams.requireCurrent(stream), key, KeyTracking.INDEX);
        return current.equals(place) ? found : read(current, from, maxEvents, maxBytes);
    }

    private static KeyEvents read(Place place, Optional<EventPosition> from, int maxEvents, long maxBytes) {
        String stream = place.stream().name();
        String key = place.key();
        int shard = place.shard().number();
        from.ifPresent(position -> requirePosition(position, stream, shard));
        int partition = from.map(EventPosition::partition).orElse(0);
        long offset = from.map(EventPosition::offset).orElse(0L);
        List<StoredEvent> events = new ArrayList<>();
        long bytesLeft = maxBytes;
        Page page;
        do { // mostly once: but blocks may have few events of the key, or only such that are before the offset
            page = read(place, partition, offset, maxEvents - events.size(), bytesLeft);
            if (page == null) {
                return new KeyEvents(0, List.of(), Optional.empty());
            }
            for (Row row : page.events()) {
                EventPosition position = new EventPosition(stream, shard, row.partition(), row.offset());
                if (events.size() == maxEvents || bytesLeft <= 0) {
                    return new KeyEvents(page.version(), events, Optional.of(position));
                }
                bytesLeft -= row.bytes();
                events.add(new StoredEvent(
                        position,
                        key,
                        row.valueOrEmpty(),
                        headers(position, row),
                        row.publishedAt(),
                        row.valueState()));
            }
            partition = page.partition();
            offset = page.nextOffset();
        } while (events.size() < maxEvents && bytesLeft > 0 && !page.isLast());
        Optional<EventPosition> next =
                page.isLast() ? Optional.empty() : Optional.of(new EventPosition(stream, shard, partition, offset));
        return new KeyEvents(page.version(), events, next);
    }

    private static @Nullable Page read(Place place, int fromPartition, long fromOffset, int maxRows, long maxBytes) {
        return place.query((connection, functions) -> functions.read(
                connection,
                place.stream().name(),
                place.slot(),
                place.key(),
                fromPartition,
                fromOffset,
                maxRows,
                maxBytes));
    }

    private static void requirePosition(EventPosition from, String stream, int shard) {
        if (!stream.equals(from.stream()) || from.shard() != shard || from.partition() < 0 || from.offset() < 0) {
            throw new InvalidInputException(
                    "from", "must be a position of stream " + stream + " on shard " + shard + ", but is " + from);
        }
    }

    private static Map<String, String> headers(EventPosition position, Row row) {
        String json = null;
        try {
            json = row.headers().json();
            return json == null ? Map.of() : HeadersJson.decode(json);
        } catch (CharacterCodingException | IllegalArgumentException e) {
            throw new UndecodableEventException(position, json, e);
        }
    }
}
