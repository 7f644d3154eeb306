package io.eventsql.internal.relay;

import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import io.eventsql.internal.shard.KeyHash;
import io.eventsql.internal.shard.PartitionMap;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.SlotMap;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.OutboxTable.Row;
import io.eventsql.internal.sql.StreamPendingException;
import io.eventsql.internal.sql.StreamTable;
import java.sql.SQLException;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Routes the events of one outbox. Queries databases only in {@link #lookUp} and {@link #refresh}, never while a
 * transaction of the relay is open. Used by one thread.
 */
final class Destinations implements AppendRepair.KnownStreams {
    private static final Logger LOG = LoggerFactory.getLogger(Destinations.class);
    private static final int HASH_PARTITION_SHIFT = 16;
    private static final int HASH_SHARD_MASK = 0xffff;

    private final Shards shards;
    private final StreamRegistry streams;
    private final @Nullable Shard own;
    private final Map<String, Known> known = new HashMap<>();
    private final Set<String> missing = new HashSet<>();
    private final Set<String> pending = new HashSet<>();

    /** @param own the shard of the outbox; {@code null} if the outbox is standalone */
    Destinations(Shards shards, StreamRegistry streams, @Nullable Shard own) {
        this.shards = shards;
        this.streams = streams;
        this.own = own;
    }

    /**
     * A stream that exists.
     *
     * @param ownId its id on the outbox's own shard; 0 if the outbox is standalone
     * @param ownMap its map there; {@code null} if the outbox is standalone
     */
    private record Known(
            StreamSpec stream, int ownId, @Nullable PartitionMap ownMap) {
        PartitionMap map(Shard shard, @Nullable Shard own) {
            return ownMap != null && shard == own ? ownMap : shard.streams().map(stream);
        }
    }

    /**
     * The destination of an event.
     *
     * @param partition on another shard only where the event belongs as far as this process knows: {@link Sender} finds out
     * @param streamId the stream's id if this is the outbox's own shard
     * @param mapVersion the version of the stream's map on the shard
     */
    record Destination(StreamSpec stream, Shard shard, int partition, int streamId, int mapVersion) {}

    boolean isKnown(String stream) {
        return known.containsKey(stream) || missing.contains(stream) || pending.contains(stream);
    }

    /**
     * Returns whether the outbox's own shard lacks a stream that may exist, and cannot get it yet: its events wait in the transfer table,
     * also those of this shard, and hold back no others.
     */
    boolean isPending(String stream) {
        return pending.contains(stream);
    }

    /**
     * Returns the event's destination; {@code null} if its stream does not exist. With a key: key → slot → shard, and a
     * partition there. Without a key: the outbox's own shard, or a healthy one; the same for all events of a call, unless a
     * shard fails in between.
     */
    @Nullable
    Destination of(Row event) {
        Known found = known.get(event.stream());
        if (found == null) {
            return isPending(event.stream()) ? ofPending(event) : null;
        }
        StreamSpec stream = found.stream();
        String key = event.key();
        if (key == null) {
            Shard shard = shardFor(stream, event.routingHash());
            PartitionMap map = found.map(shard, own);
            int partition = (event.routingHash() >>> HASH_PARTITION_SHIFT) % map.partitions();
            return new Destination(stream, shard, partition, found.ownId(), map.version());
        }
        long hash = KeyHash.of(key);
        Shard shard = shards.ofSlot(stream.name(), KeyHash.slot(hash));
        PartitionMap map = found.map(shard, own);
        return new Destination(stream, shard, map.partition(hash), found.ownId(), map.version());
    }

    /**
     * By the slots of all streams: if this one turns out to stay on other shards, {@link Sender} addresses its events anew, as after a
     * move, and later ones follow them.
     */
    private Destination ofPending(Row event) {
        StreamSpec stream = StreamSpec.of(event.stream());
        String key = event.key();
        Shard shard = key == null
                ? shardFor(stream, event.routingHash())
                : shards.ofSlot(stream.name(), KeyHash.slot(KeyHash.of(key)));
        return new Destination(stream, shard, event.routingHash() >>> HASH_PARTITION_SHIFT, 0, 0);
    }

    private Shard shardFor(StreamSpec stream, int routingHash) {
        SlotMap slots = shards.slots().of(stream.name());
        if (own != null && slots.hasSlots(own.number())) {
            return own;
        }
        List<Shard> withSlots = shards.all().stream()
                .filter(shard -> slots.hasSlots(shard.number()))
                .toList();
        List<Shard> healthy = withSlots.stream().filter(Shard::isHealthy).toList();
        List<Shard> possible = healthy.isEmpty() ? withSlots : healthy;
        return possible.get((routingHash & HASH_SHARD_MASK) % possible.size());
    }

    /** Returns whether keys may have moved between shards. */
    boolean haveKeysMoved() {
        return shards.haveMoved();
    }

    /** Looks up streams; missing and pending ones also become {@linkplain #isKnown known}, until {@link #forgetNotFound}. */
    void lookUp(Collection<String> names) throws SQLException {
        for (String name : names) {
            try {
                StreamSpec stream = streams.requireOn(own, name);
                known.put(
                        name,
                        own == null
                                ? new Known(stream, 0, null)
                                : new Known(
                                        stream,
                                        own.streams().ensure(stream),
                                        own.streams().map(stream)));
            } catch (UnknownStreamException e) {
                missing.add(name);
            } catch (StreamPendingException e) {
                LOG.debug("Events of stream {} wait in the transfer table", name, e);
                pending.add(name);
            }
        }
    }

    /** Reads them from the outbox's own shard. */
    @Override
    public boolean refresh(Set<StreamSpec> rejected) throws SQLException {
        boolean changed = false;
        if (own == null) {
            return changed;
        }
        for (StreamSpec stream : rejected) {
            Known before = known.get(stream.name());
            own.streams().forget(stream.name());
            Optional<StreamTable.Row> now = own.streams().find(stream.name());
            if (now.isEmpty()) { // it may have been created anew on the others: to be looked up
                known.remove(stream.name());
                changed = true;
            } else {
                Known found = new Known(
                        now.get().spec(),
                        now.get().id(),
                        own.streams().map(now.get().spec()));
                known.put(stream.name(), found);
                changed |= before == null
                        || found.ownId() != before.ownId()
                        || !Objects.equals(found.ownMap(), before.ownMap());
            }
        }
        return changed;
    }

    @Override
    public void forgetAll() {
        known.clear();
        forgetNotFound();
    }

    /** Forgets missing and pending streams: they may exist when their next event arrives. */
    void forgetNotFound() {
        missing.clear();
        pending.clear();
    }
}
