package io.eventsql.internal.shard;

import io.eventsql.internal.sql.StreamTable;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The streams whose keys stay where they are while those of others move, with their slot maps, as far as this process has read them.
 * A stream that stays does so until it is deleted: that a shard says nothing of it may have been read before, or the shard does not
 * know yet. Not thread-safe: guarded by a lock of {@link Shards}.
 */
final class StationaryStreams {
    /**
     * What is known of a stream.
     *
     * @param ids its id on each shard that was read: another one means that it was created anew
     * @param version that of its slot map; 0: it moves
     */
    private record Known(
            Map<Integer, Integer> ids,
            int version,
            @Nullable SlotMap slots) {
        Known {
            ids = Map.copyOf(ids);
        }
    }

    /** What a shard has said of the slots of a stream. */
    enum Change {
        /** What was known. */
        NONE,
        /** That a stream stays of which nothing was known. */
        FIRST,
        /** Something else than was known. */
        OTHER
    }

    private final Map<String, Known> known = new HashMap<>();

    /** Remembers what a shard has said of a stream. */
    Change learn(int shard, StreamTable.Row row) {
        Known before = known.get(row.spec().name());
        Known after = after(before, shard, row);
        known.put(row.spec().name(), after);
        if (before == null) {
            return after.slots() == null ? Change.NONE : Change.FIRST;
        }
        return Objects.equals(before.slots(), after.slots()) ? Change.NONE : Change.OTHER;
    }

    private static Known after(@Nullable Known before, int shard, StreamTable.Row row) {
        StreamTable.StoredSlots said = row.kept();
        if (said == null && row.isOnSpareShard()) { // it does not know
            return before == null ? new Known(Map.of(), 0, null) : before;
        }
        int version = said == null ? 0 : said.version();
        if (before == null || isCreatedAnew(before, shard, row, version)) {
            return new Known(Map.of(shard, row.id()), version, slots(said));
        } else if (version > 0 && version < before.version()) {
            return before; // of a stream that was deleted
        }
        Map<Integer, Integer> ids = new HashMap<>(before.ids());
        ids.put(shard, row.id());
        return before.version() == 0
                ? new Known(ids, version, slots(said))
                : new Known(ids, before.version(), before.slots());
    }

    /**
     * Returns whether the stream is another one than was known. One that stays has the same slot map on all shards, and each shard
     * that may have keys of it knows that before it has a later map. What is created later begins with no earlier one.
     */
    private static boolean isCreatedAnew(Known before, int shard, StreamTable.Row row, int version) {
        Integer id = before.ids().get(shard);
        if (id != null && id != row.id()) {
            return true;
        } else if (before.version() == 0) {
            return false; // it may stay from now on
        } else if (version > 0) {
            return version > before.version();
        }
        StreamTable.StoredSlots ofShard = row.slots();
        return ofShard != null && ofShard.version() > before.version();
    }

    private static @Nullable SlotMap slots(StreamTable.@Nullable StoredSlots said) {
        return said == null ? null : SlotMap.kept(ShardStreams.ints(said.slotMap()));
    }

    /** Returns the slot map of a stream; {@code null}: it moves. */
    @Nullable
    SlotMap find(String stream) {
        Known found = known.get(stream);
        return found == null ? null : found.slots();
    }

    /** Returns the slot maps of all stationary streams. */
    Map<String, SlotMap> kept() {
        Map<String, SlotMap> kept = new HashMap<>();
        known.forEach((stream, found) -> {
            if (found.slots() != null) {
                kept.put(stream, found.slots());
            }
        });
        return kept;
    }
}
