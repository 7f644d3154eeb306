package io.eventsql.internal.relay;

import io.eventsql.EventSqlException;
import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import io.eventsql.internal.shard.KeyHash;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.OutboxTable.Row;
import io.eventsql.internal.sql.StreamTable;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Where the events of one outbox go. Asks databases only in {@link #learn}, never while a transaction of the relay is
 * open. Used by one thread.
 */
final class Destinations {
    private static final int HALF = 16;

    private final Shards shards;
    private final StreamRegistry streams;
    private final @Nullable Shard own;
    private final Map<String, StreamSpec> known = new HashMap<>();
    private final Set<String> missing = new HashSet<>();

    /** @param own the shard that the outbox's database is; {@code null} if it is none */
    Destinations(Shards shards, StreamRegistry streams, @Nullable Shard own) {
        this.shards = shards;
        this.streams = streams;
        this.own = own;
    }

    /** One event's place. */
    record Destination(StreamSpec stream, Shard shard, int partition) {}

    boolean isKnown(String stream) {
        return known.containsKey(stream) || missing.contains(stream);
    }

    /**
     * The event's place; {@code null} if its stream does not exist. With a key: key → slot → shard, and a partition there.
     * Without: the outbox's own shard, or a healthy one; the same for all events of a call, unless a shard fails just then.
     */
    @Nullable
    Destination of(Row event) {
        StreamSpec stream = known.get(event.stream());
        if (stream == null) {
            return null;
        }
        String key = event.key();
        if (key == null) {
            return new Destination(
                    stream, shardFor(event.routingHash()), (event.routingHash() >>> HALF) % stream.partitions());
        }
        long hash = KeyHash.of(key);
        return new Destination(stream, shards.ofSlot(KeyHash.slot(hash)), KeyHash.partition(hash, stream.partitions()));
    }

    private Shard shardFor(int routingHash) {
        if (own != null) {
            return own;
        }
        List<Shard> healthy = shards.all().stream().filter(Shard::isHealthy).toList();
        List<Shard> possible = healthy.isEmpty() ? shards.all() : healthy;
        return possible.get((routingHash & 0xffff) % possible.size());
    }

    /** Looks up streams; what does not exist is {@linkplain #isKnown known}, too, until {@link #forgetMissing}. */
    void learn(Collection<String> names) throws SQLException {
        for (String name : names) {
            try {
                StreamSpec stream = streams.require(name);
                if (own != null) {
                    own.ensureStream(stream);
                }
                known.put(name, stream);
            } catch (UnknownStreamException e) {
                missing.add(name);
            } catch (EventSqlException e) {
                throw new SQLTransientConnectionException(e.getMessage(), "08001", e);
            }
        }
    }

    /**
     * Looks, after an append was refused, which of these streams the outbox's own shard does not have as it was known.
     *
     * @return whether something is known better now
     */
    boolean checkOwn(Collection<StreamSpec> appended) throws SQLException {
        boolean changed = false;
        if (own == null) {
            return changed;
        }
        for (StreamSpec stream : appended) {
            int before = own.ensureStream(stream);
            own.forgetStream(stream.name());
            Optional<StreamTable.Row> now = own.findStream(stream.name());
            if (now.isEmpty()) {
                known.remove(stream.name());
                missing.add(stream.name());
            } else {
                known.put(stream.name(), now.get().spec());
            }
            changed |= now.isEmpty() || now.get().id() != before;
        }
        return changed;
    }

    /** A stream that was missing may exist when its next event comes. */
    void forgetMissing() {
        missing.clear();
    }
}
