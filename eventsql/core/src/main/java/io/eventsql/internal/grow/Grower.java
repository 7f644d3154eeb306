package io.eventsql.internal.grow;

import io.eventsql.Growth;
import io.eventsql.Growth.ShardGrowth;
import io.eventsql.Growth.State;
import io.eventsql.InvalidInputException;
import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.PartitionMap;
import io.eventsql.internal.shard.RetriedStep;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.SlotMap;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.wake.WakeUp;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.function.IntPredicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Adds partitions to streams. Everything it does is in the databases, and each step can be repeated: whatever process calls it
 * next, after a crash at any place, completes it. Thread-safe.
 */
public final class Grower {
    private static final Logger LOG = LoggerFactory.getLogger(Grower.class);

    private final Shards shards;
    private final StreamRegistry streams;
    private final WakeUp wakeUp;

    public Grower(Shards shards, StreamRegistry streams, WakeUp wakeUp) {
        this.shards = shards;
        this.streams = streams;
        this.wakeUp = wakeUp;
    }

    /** See {@link io.eventsql.EventSql#previewGrowth}. */
    public Growth preview(String name, int partitions) {
        StreamSpec stream = requireGrowable(name, partitions);
        shards.requireAllGiven("The partitions of stream " + name + " could not be read");
        return describe(stream, partitions);
    }

    /** See {@link io.eventsql.EventSql#grow}. */
    public Growth grow(String name, int partitions) {
        StreamSpec stream = requireGrowable(name, partitions);
        shards.requireAllGiven("Stream " + name + " could not grow");
        for (Shard shard : shards.all()) { // all of them before the first one grows
            call("Adding partitions", stream, shard, () -> prepare(shard, stream, partitions));
        }
        for (Shard shard : shards.all()) {
            call("Growing", stream, shard, () -> grow(shard, stream, partitions));
        }
        return describe(stream, partitions);
    }

    /** See {@link io.eventsql.EventSql#cancelGrowth}. */
    public void cancel(String name) {
        StreamSpec stream = streams.require(name);
        shards.requireAllGiven("Unused partitions of stream " + name + " could not be removed");
        for (Shard shard : shards.all()) {
            call("Removing unused partitions", stream, shard, () -> {
                int id = shard.streams().ensure(stream);
                boolean removed;
                do {
                    removed = shard.require()
                            .transactionIf(c -> shard.tables().growth().removePartition(c, id));
                } while (removed);
                return stream;
            });
        }
    }

    private StreamSpec requireGrowable(String name, int partitions) {
        StreamSpec stream = streams.require(name);
        if (partitions < stream.partitions() || partitions > StreamSpec.PARTITIONS_MAX) {
            throw new InvalidInputException(
                    "partitions",
                    "must be between " + stream.partitions() + " (when the stream was created) and "
                            + StreamSpec.PARTITIONS_MAX + ", but is " + partitions);
        }
        return stream;
    }

    private static InvalidInputException cannotGrow(StreamSpec stream) {
        return new InvalidInputException(
                "stream",
                "cannot grow: " + stream.name() + " has partitions that were added for copies of failed events"
                        + ". Create a stream with more partitions, and copy the events to it with a consumer");
    }

    private Growth describe(StreamSpec stream, int partitions) {
        List<ShardGrowth> described = new ArrayList<>();
        for (Shard shard : shards.all()) {
            described.add(call("Reading the partitions", stream, shard, () -> describe(shard, stream, partitions)));
        }
        return new Growth(stream.name(), partitions, described);
    }

    private ShardGrowth describe(Shard shard, StreamSpec stream, int partitions) throws SQLException {
        int existing = shard.streams().countPartitions(stream); // which reads the map, too
        PartitionMap map = shard.streams().map(stream);
        IntPredicate hasKeySlot = hasKeySlot(shard, stream);
        int used = map.usedPartitions();
        int slots = map.countSlots(hasKeySlot);
        if (used >= partitions || !hasUse(shard, stream, map)) {
            return new ShardGrowth(shard.number(), shard.name(), State.GROWN, used, slots, 0);
        }
        boolean prepared = existing >= partitions
                && shard.require().read(c -> shard.tables().streams().hasAllPartitions(c, stream));
        return new ShardGrowth(
                shard.number(),
                shard.name(),
                prepared ? State.PREPARED : State.PENDING,
                used,
                slots,
                map.movedSlots(map.grown(partitions, hasKeySlot)));
    }

    private IntPredicate hasKeySlot(Shard shard, StreamSpec stream) {
        SlotMap slots = shards.slots().of(stream.name());
        return slot -> slots.owner(slot) == shard.number();
    }

    /** Returns whether more partitions would be used: not on a shard that all keys have left, but on one that has had none yet. */
    private boolean hasUse(Shard shard, StreamSpec stream, PartitionMap map) throws SQLException {
        if (shards.slots().of(stream.name()).hasSlots(shard.number())) {
            return true;
        }
        OptionalInt id = shard.streams().readId(stream);
        List<Integer> closed = id.isEmpty()
                ? List.of()
                : shard.require().read(c -> shard.tables().moves().closedPartitions(c, id.getAsInt()));
        return map.isWithin(closed);
    }

    /** Adds the partitions with their tables: everything that an append needs, before a map names them. */
    private ShardGrowth prepare(Shard shard, StreamSpec stream, int partitions) throws SQLException {
        requireNoMove(shard, stream);
        int id = shard.streams().readOrCreate(stream).id();
        ShardGrowth before = describe(shard, stream, partitions);
        if (before.state() == State.GROWN) {
            return before;
        }
        shard.require().transaction(c -> {
            shard.tables().growth().prepare(c, id, partitions);
            return id;
        });
        shard.streams().create(stream); // the tables that are missing
        return describe(shard, stream, partitions);
    }

    /** Before anything is added; the database rejects it, too. */
    private static void requireNoMove(Shard shard, StreamSpec stream) throws SQLException {
        boolean isMoving = shard.require().read(c -> {
            var moves = shard.tables().moves();
            return moves.find(c).isPresent() && !moves.isStationary(c, stream.name());
        });
        if (isMoving) {
            throw isBeingMoved(stream);
        }
    }

    private static InvalidInputException isBeingMoved(StreamSpec stream) {
        return new InvalidInputException(
                "stream",
                "cannot grow now: keys of " + stream.name()
                        + " are being moved between shards. Complete or cancel that first");
    }

    /** The step that cannot be undone. Where another process was faster, or the commit was in doubt, the map says so. */
    private ShardGrowth grow(Shard shard, StreamSpec stream, int partitions) throws SQLException {
        ShardGrowth before = describe(shard, stream, partitions);
        if (before.state() == State.GROWN) {
            return before;
        }
        int id = shard.streams().ensure(stream);
        PartitionMap former = shard.streams().map(stream);
        PartitionMap next = former.grown(partitions, hasKeySlot(shard, stream));
        long beganAt = System.nanoTime();
        shard.require().replicatedTransaction(c -> {
            shard.tables().growth().grow(c, id, former.version(), next.slots(), next.moved());
            return id;
        });
        LOG.info(
                "Stream {} has grown from {} to {} partitions on {}; {} of {} slots have moved, in {} ms",
                stream.name(),
                before.partitions(),
                partitions,
                shard,
                before.movingSlots(),
                before.slots(),
                TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - beganAt));
        shard.streams().find(stream.name());
        wakeUp.consumersChanged(shard, id);
        return describe(shard, stream, partitions);
    }

    private static <T> T call(String action, StreamSpec stream, Shard shard, Callable<T> step) {
        return RetriedStep.take(
                action + " of stream " + stream.name() + " on " + shard + " failed",
                e -> switch (SqlErrors.state(e)) {
                    case SqlErrors.PARTITION_IN_USE -> Optional.of(cannotGrow(stream));
                    case SqlErrors.NOT_MOVABLE -> Optional.of(isBeingMoved(stream));
                    default -> Optional.empty();
                },
                step);
    }
}
