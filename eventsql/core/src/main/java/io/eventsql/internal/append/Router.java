package io.eventsql.internal.append;

import io.eventsql.EventNotStoredException;
import io.eventsql.StreamSpec;
import io.eventsql.internal.append.EventValidator.Valid;
import io.eventsql.internal.shard.KeyHash;
import io.eventsql.internal.shard.PartitionMap;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.SlotMap;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * Routes events to shards and partitions. Events with a key: key → slot → shard, and a partition there, always the same.
 * Events without a key: the preferred shard, or the healthy ones in turn; those of one call stay together. Thread-safe.
 */
final class Router {
    /** The indexes of a call with one event. */
    private static final int[] FIRST = {0};

    private final Shards shards;
    private final Supplier<SlotMap> slots;
    private final @Nullable DataSource preferredDataSource;
    private volatile @Nullable Shard preferredShard;
    private final AtomicInteger turn =
            new AtomicInteger(ThreadLocalRandom.current().nextInt(1 << 16));

    /**
     * Routes by what this process knows of the slots at the moment.
     *
     * @param preferred the database of the shard that receives events without a key while it is healthy
     */
    Router(Shards shards, @Nullable DataSource preferred) {
        this(shards, preferred, shards::slots);
    }

    /** @param slots returns the slot map to route by */
    Router(Shards shards, @Nullable DataSource preferred, Supplier<SlotMap> slots) {
        this.shards = shards;
        this.preferredDataSource = preferred;
        this.slots = slots;
    }

    /**
     * The part of a call for one shard.
     *
     * @param indexes the indexes of its events in the call
     * @param map the stream's map on the shard, by which it is routed
     * @param partitions the partition of each, or {@link PublishCall#ANY_PARTITION}
     * @param routedBy the number of the slot map by which it is routed
     */
    record Part(Shard shard, int[] indexes, PartitionMap map, int[] partitions, long routedBy) {}

    /** A call, or a part of one, that was routed anew. */
    record Routed(Shard shard, PublishCall call) {}

    /** Routes one event. */
    Part route(StreamSpec stream, Valid event) {
        SlotMap current = slots.get();
        SlotMap by = current.of(stream.name());
        String key = event.key();
        if (key == null) {
            Shard shard = chooseShardForEventsWithoutKey(by);
            return new Part(shard, FIRST, shard.streams().map(stream), PublishCall.ANY_PARTITION, current.number());
        }
        long hash = KeyHash.of(key);
        Shard shard = requireConfigured(stream, shards.get(by.owner(KeyHash.slot(hash))));
        PartitionMap map = shard.streams().map(stream);
        return new Part(shard, FIRST, map, new int[] {map.partition(hash)}, current.number());
    }

    private static Shard requireConfigured(StreamSpec stream, Shard shard) {
        if (!shard.isConfigured()) {
            throw new EventNotStoredException(
                    "Not stored in stream " + stream.name() + ": " + notConfigured(shard), null);
        }
        return shard;
    }

    private static String notConfigured(Shard shard) {
        return "the event belongs to shard " + shard.name() + " (number " + shard.number()
                + "), whose database is not among the data sources of this process. Configure it, and restart";
    }

    /** Returns the shard of an event without a key that is identified by an id. */
    Shard route(StreamSpec stream, UUID id) {
        SlotMap by = slots.get().of(stream.name());
        return requireConfigured(stream, shards.get(by.owner(KeyHash.slot(KeyHash.of(id.toString())))));
    }

    /** Routes the events of one call; returns one part for each shard involved. */
    List<Part> route(StreamSpec stream, List<Valid> events) {
        SlotMap current = slots.get();
        SlotMap by = current.of(stream.name());
        Shard withoutKey = chooseShardForEventsWithoutKey(by);
        if (haveNoKeys(events)) {
            int[] indexes = new int[events.size()];
            Arrays.setAll(indexes, i -> i);
            return List.of(new Part(
                    withoutKey,
                    indexes,
                    withoutKey.streams().map(stream),
                    PublishCall.ANY_PARTITION,
                    current.number()));
        }
        Shard[] shardOf = new Shard[events.size()];
        int[] partitionOf = new int[events.size()];
        int[] eventsOf = new int[shards.size()];
        boolean[] hasKeys = new boolean[shards.size()];
        PartitionMap[] mapOf = new PartitionMap[shards.size()];
        shards.all().forEach(shard -> mapOf[shard.number()] = shard.streams().map(stream));
        int anyPartition = Math.floorMod(turn.get(), stream.partitions());
        for (int i = 0; i < events.size(); i++) {
            String key = events.get(i).key();
            if (key == null) {
                shardOf[i] = withoutKey;
                partitionOf[i] = anyPartition;
            } else {
                long hash = KeyHash.of(key);
                shardOf[i] = requireConfigured(stream, shards.get(by.owner(KeyHash.slot(hash))));
                partitionOf[i] = mapOf[shardOf[i].number()].partition(hash);
                hasKeys[shardOf[i].number()] = true;
            }
            eventsOf[shardOf[i].number()]++;
        }
        List<Part> parts = new ArrayList<>();
        for (Shard shard : shards.all()) {
            int size = eventsOf[shard.number()];
            if (size == 0) {
                continue;
            }
            int[] indexes = new int[size];
            int[] partitions = new int[size];
            for (int i = 0, at = 0; i < shardOf.length; i++) {
                if (shardOf[i] == shard) {
                    indexes[at] = i;
                    partitions[at++] = partitionOf[i];
                }
            }
            parts.add(new Part(
                    shard,
                    indexes,
                    mapOf[shard.number()],
                    hasKeys[shard.number()] ? partitions : PublishCall.ANY_PARTITION,
                    current.number()));
        }
        return parts;
    }

    /**
     * Routes a call anew, which has waited for a shard; divides it if its events belong to several shards now. What belongs to a
     * shard that this process was not given fails.
     */
    List<Routed> reroute(PublishCall call, Shard from, SlotMap next) {
        SlotMap by = next.of(call.stream().name());
        Map<Integer, List<Integer>> indexes = new LinkedHashMap<>();
        int first = -1;
        for (int i = 0; i < call.events().size(); i++) {
            String key = call.events().get(i).key();
            int owner = key == null ? -1 : by.owner(KeyHash.slot(KeyHash.of(key)));
            first = first < 0 ? owner : first;
            indexes.computeIfAbsent(owner, number -> new ArrayList<>()).add(i);
        }
        List<Integer> withoutKey = indexes.remove(-1);
        if (withoutKey != null) {
            int number = by.hasSlots(from.number()) ? from.number() : first;
            if (number < 0) {
                number = chooseShardForEventsWithoutKey(by).number();
            }
            List<Integer> together = indexes.computeIfAbsent(number, n -> new ArrayList<>());
            together.addAll(withoutKey);
            together.sort(null);
        }
        List<PublishCall> parts = indexes.size() == 1
                ? List.of(call)
                : call.divide(indexes.values().stream()
                        .map(of -> of.stream().mapToInt(Integer::intValue).toArray())
                        .toList());
        List<Routed> routed = new ArrayList<>();
        Iterator<Integer> owners = indexes.keySet().iterator();
        for (PublishCall part : parts) {
            Shard shard = shards.get(owners.next());
            if (!shard.isConfigured()) {
                part.failAsNotStored(notConfigured(shard), null);
                continue;
            }
            part.reroute(shard.streams().map(part.stream()));
            routed.add(new Routed(shard, part.routedBy(next.number())));
        }
        return routed;
    }

    private static boolean haveNoKeys(List<Valid> events) {
        for (Valid event : events) {
            if (event.key() != null) {
                return false;
            }
        }
        return !events.isEmpty();
    }

    /** Returns the shard for events of a stream without keys by the current slot map. */
    Shard chooseShardForEventsWithoutKey(StreamSpec stream) {
        return chooseShardForEventsWithoutKey(slots.get().of(stream.name()));
    }

    /** Returns a healthy shard, preferably the preferred one; if none is healthy, any: it may recover before the deadline. */
    private Shard chooseShardForEventsWithoutKey(SlotMap by) {
        List<Shard> all = shards.all();
        if (all.size() == 1) {
            return all.getFirst(); // no turn, which all callers would write
        }
        Shard preferred = preferredShard();
        if (preferred != null && !by.hasSlots(preferred.number())) {
            preferred = null;
        }
        if (preferred != null && preferred.isHealthy()) {
            return preferred;
        }
        int first = turn.getAndIncrement();
        Shard any = null;
        for (int i = 0; i < all.size(); i++) {
            Shard shard = all.get(Math.floorMod(first + i, all.size()));
            if (by.hasSlots(shard.number())) {
                if (shard.isHealthy()) {
                    return shard;
                }
                any = any == null ? shard : any;
            }
        }
        return preferred != null ? preferred : any != null ? any : all.get(Math.floorMod(first, all.size()));
    }

    /** Unknown until its database is available, because the database records which shard it is. */
    private @Nullable Shard preferredShard() {
        Shard preferred = preferredShard;
        if (preferred == null && preferredDataSource != null) {
            preferred = shards.of(preferredDataSource).orElse(null);
            preferredShard = preferred;
        }
        return preferred;
    }
}
