package io.eventsql.internal.append;

import io.eventsql.StreamSpec;
import io.eventsql.internal.append.EventValidator.Valid;
import io.eventsql.internal.shard.KeyHash;
import io.eventsql.internal.shard.PartitionMap;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
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
    private final @Nullable DataSource preferredDataSource;
    private volatile @Nullable Shard preferredShard;
    private final AtomicInteger turn =
            new AtomicInteger(ThreadLocalRandom.current().nextInt(1 << 16));

    /** @param preferred the database of the shard that receives events without a key while it is healthy */
    Router(Shards shards, @Nullable DataSource preferred) {
        this.shards = shards;
        this.preferredDataSource = preferred;
    }

    /**
     * The part of a call for one shard.
     *
     * @param indexes the indexes of its events in the call
     * @param map the stream's map on the shard, by which it is routed
     * @param partitions the partition of each, or {@link PublishCall#ANY_PARTITION}
     */
    record Part(Shard shard, int[] indexes, PartitionMap map, int[] partitions) {}

    /** Routes one event. */
    Part route(StreamSpec stream, Valid event) {
        String key = event.key();
        if (key == null) {
            Shard shard = chooseShardForEventsWithoutKey();
            return new Part(shard, FIRST, shard.map(stream), PublishCall.ANY_PARTITION);
        }
        long hash = KeyHash.of(key);
        Shard shard = shards.ofSlot(KeyHash.slot(hash));
        PartitionMap map = shard.map(stream);
        return new Part(shard, FIRST, map, new int[] {map.partition(hash)});
    }

    /** Returns the shard of an event without a key that is identified by an id. */
    Shard route(UUID id) {
        return shards.ofSlot(KeyHash.slot(KeyHash.of(id.toString())));
    }

    /** Routes the events of one call; returns one part for each shard involved. */
    List<Part> route(StreamSpec stream, List<Valid> events) {
        Shard withoutKey = chooseShardForEventsWithoutKey();
        if (haveNoKeys(events)) {
            int[] indexes = new int[events.size()];
            Arrays.setAll(indexes, i -> i);
            return List.of(new Part(withoutKey, indexes, withoutKey.map(stream), PublishCall.ANY_PARTITION));
        }
        Shard[] shardOf = new Shard[events.size()];
        int[] partitionOf = new int[events.size()];
        int[] eventsOf = new int[shards.size()];
        boolean[] hasKeys = new boolean[shards.size()];
        PartitionMap[] mapOf = new PartitionMap[shards.size()];
        shards.all().forEach(shard -> mapOf[shard.number()] = shard.map(stream));
        int anyPartition = Math.floorMod(turn.get(), stream.partitions());
        for (int i = 0; i < events.size(); i++) {
            String key = events.get(i).key();
            if (key == null) {
                shardOf[i] = withoutKey;
                partitionOf[i] = anyPartition;
            } else {
                long hash = KeyHash.of(key);
                shardOf[i] = shards.ofSlot(KeyHash.slot(hash));
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
                    hasKeys[shard.number()] ? partitions : PublishCall.ANY_PARTITION));
        }
        return parts;
    }

    private static boolean haveNoKeys(List<Valid> events) {
        for (Valid event : events) {
            if (event.key() != null) {
                return false;
            }
        }
        return !events.isEmpty();
    }

    /** Returns a healthy shard, preferably the preferred one; if none is healthy, any: it may recover before the deadline. */
    Shard chooseShardForEventsWithoutKey() {
        if (shards.size() == 1) {
            return shards.get(0); // no turn, which all callers would write
        }
        Shard preferred = preferredShard();
        if (preferred != null && preferred.isHealthy()) {
            return preferred;
        }
        int first = turn.getAndIncrement();
        for (int i = 0; i < shards.size(); i++) {
            Shard shard = shards.get(Math.floorMod(first + i, shards.size()));
            if (shard.isHealthy()) {
                return shard;
            }
        }
        return preferred != null ? preferred : shards.get(Math.floorMod(first, shards.size()));
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
