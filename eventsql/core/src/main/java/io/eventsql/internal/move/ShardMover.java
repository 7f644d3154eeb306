package io.eventsql.internal.move;

import static io.eventsql.internal.move.ShardCalls.call;
import static io.eventsql.internal.move.ShardCalls.step;

import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.ShardMove;
import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.MoveFunctions.StoredMove;
import io.eventsql.internal.sql.ShardIdentity;
import io.eventsql.internal.wake.WakeUp;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Moves keys between shards. Everything it does is in the databases, and each step can be repeated: whatever process calls it next,
 * after a crash at any place, completes it. Thread-safe.
 */
public final class ShardMover {
    private static final Logger LOG = LoggerFactory.getLogger(ShardMover.class);

    private final Shards shards;
    private final StreamRegistry streams;
    private final MoveSteps steps;

    public ShardMover(Shards shards, StreamRegistry streams, WakeUp wakeUp) {
        this.shards = shards;
        this.streams = streams;
        this.steps = new MoveSteps(streams, wakeUp);
    }

    /** See {@link io.eventsql.EventSql#previewShards}. */
    public ShardMove preview(Collection<Integer> target) {
        return describe(find(requireKnown(target)));
    }

    /** See {@link io.eventsql.EventSql#currentShardMove}. */
    public Optional<ShardMove> current() {
        Known known = read();
        return known.plan()
                .map(plan -> describe(new Move(
                        new SlotPlan(known.newest().finishedMap(), plan.slotMap()),
                        plan.version(),
                        known.shards(),
                        known.decider(),
                        known.plan())));
    }

    /** See {@link io.eventsql.EventSql#moveShards}. */
    public ShardMove move(Collection<Integer> target) {
        Set<Integer> wanted = requireKnown(target);
        Move move = find(wanted);
        if (move.plan().isEmpty()) {
            return describe(move);
        }
        if (move.stored().isEmpty()) {
            decide(move);
            move = find(wanted); // another process may have been faster, and even have completed it
            if (move.stored().isEmpty()) {
                return describe(move);
            }
        }
        long beganAt = System.nanoTime();
        steps.complete(move);
        LOG.info(
                "Moved {} of {} slots: shards {} have map version {}, after {} ms",
                describe(move).movingSlots(),
                move.plan().after().length,
                move.plan().shards(),
                move.version(),
                TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - beganAt));
        return describe(find(wanted));
    }

    /** See {@link io.eventsql.EventSql#cancelShardMove}. */
    public void cancel() {
        Known known = read();
        int version = known.newest().finishedVersion() + 1;
        Shard decider = known.decider();
        Optional<Long> last = call(
                "Cancelling the move",
                decider,
                () -> decider.require()
                        .replicatedTransaction(c ->
                                Optional.ofNullable(decider.tables().moves().cancel(c, version))));
        if (last.isEmpty()) {
            throw new EventSqlException("The move cannot be cancelled any more, because keys have moved: complete it");
        }
        for (Shard shard : known.shards()) {
            step("Cancelling the move", shard, c -> shard.tables().moves().leave(c, version, last.get()));
        }
    }

    /** See {@link io.eventsql.EventSql#removeShard}. */
    public void remove(int number) {
        if (number < 0 || number >= shards.size()) {
            throw new InvalidInputException(
                    "shard", "must be between 0 and " + (shards.size() - 1) + ", but is " + number);
        }
        Known known = read();
        Optional<Shard> removing = known.shards().stream()
                .filter(shard -> shard.number() == number)
                .findFirst();
        if (removing.isPresent()) {
            List<Shard> others = new ArrayList<>(known.shards());
            others.remove(removing.get());
            ShardRemoval.remove(removing.get(), others);
        } else { // an earlier call may not have reached all of the others
            ShardRemoval.forget(number, known.shards());
        }
    }

    /**
     * What the shards know.
     *
     * @param shards all that have not been removed
     * @param newest the identity of one that has the newest map which all have
     * @param decider where the next move is decided
     * @param plan what is decided there; empty: nothing
     */
    private record Known(List<Shard> shards, ShardIdentity newest, Shard decider, Optional<StoredMove> plan) {}

    /** Reads what the shards know; rejects a process that was not given all of them: it could not complete a move. */
    private Known read() {
        Map<Shard, ShardIdentity> identities = new LinkedHashMap<>();
        for (Shard shard : shards.all()) {
            identities.put(shard, identity(shard));
        }
        Set<Integer> removed = ShardIdentity.Unused.of(identities.values()).removed();
        ShardIdentity newest = identities.values().iterator().next();
        for (ShardIdentity identity : identities.values()) {
            newest = identity.finishedVersion() > newest.finishedVersion() ? identity : newest;
        }
        List<Shard> present = new ArrayList<>();
        for (int number = 0; number < newest.shards(); number++) {
            if (removed.contains(number)) {
                continue;
            }
            if (number >= shards.size() || !shards.get(number).isConfigured()) {
                throw new EventSqlException("Keys can be moved only by a process that was started with the databases of"
                        + " all shards, but shard " + newest.names().get(number) + " is missing");
            }
            present.add(shards.get(number));
        }
        for (Shard shard : present) {
            // A move that was decided is the current one until its shard, the last one, has the map.
            Optional<StoredMove> plan = call(
                    "Reading the move",
                    shard,
                    () -> shard.require()
                            .read(c -> shard.tables().moves().find(c).filter(StoredMove::isPlan)));
            if (plan.isPresent()) {
                // Read after the plan: the identity that was read before may be of the move before.
                ShardIdentity identity = identity(shard);
                if (identity.finishedVersion() == plan.get().version() - 1) {
                    return new Known(present, identity, shard, plan);
                }
                return read(); // it was completed in between
            }
        }
        Shard decider = shards.get(Arrays.stream(newest.finishedMap()).min().orElseThrow());
        return new Known(present, newest, decider, Optional.empty());
    }

    private static ShardIdentity identity(Shard shard) {
        return call(
                "Reading the slots",
                shard,
                () -> shard.require().read(c -> shard.tables().shards().find(c).orElseThrow()));
    }

    private Set<Integer> requireKnown(Collection<Integer> target) {
        Set<Integer> wanted = new TreeSet<>(target);
        if (wanted.isEmpty()) {
            throw new InvalidInputException("shards", "must not be empty");
        }
        for (int number : wanted) {
            if (number < 0 || number >= shards.size() || !shards.get(number).isConfigured()) {
                throw new InvalidInputException(
                        "shards",
                        "must be numbers of shards whose databases are given to this process, "
                                + shards.all().stream().map(Shard::number).toList() + ", but one is " + number);
            }
        }
        return wanted;
    }

    /** Returns the move in progress, or the one to the given shards. */
    private Move find(Set<Integer> wanted) {
        Known known = read();
        int[] before = known.newest().finishedMap();
        int version = known.newest().finishedVersion() + 1;
        if (known.plan().isEmpty()) {
            return new Move(SlotPlan.of(before, wanted), version, known.shards(), known.decider(), Optional.empty());
        }
        StoredMove stored = known.plan().get();
        SlotPlan plan = new SlotPlan(before, stored.slotMap());
        if (!plan.shards().equals(wanted)) {
            throw new EventSqlException("Keys are being moved to the shards " + plan.shards()
                    + "; complete that with moveShards, or cancel it with cancelShardMove");
        }
        return new Move(plan, stored.version(), known.shards(), known.decider(), known.plan());
    }

    private static void decide(Move move) {
        Shard decider = move.decider();
        boolean receives = move.plan().receivers().contains(decider.number());
        step(
                "Deciding the move",
                decider,
                c -> decider.tables()
                        .moves()
                        .decide(c, move.version(), move.plan().after(), receives));
    }

    private ShardMove describe(Move move) {
        SlotPlan plan = move.plan();
        List<ShardMove.ShardShare> shares = new ArrayList<>();
        List<ShardMove.Transfer> transfers = new ArrayList<>();
        for (Shard shard : shards.numbered()) {
            int number = shard.number();
            shares.add(
                    new ShardMove.ShardShare(number, shard.name(), plan.ownedBefore(number), plan.ownedAfter(number)));
            for (int receiver : plan.receivers()) {
                List<Integer> slots = plan.moving(number, receiver);
                if (!slots.isEmpty()) {
                    transfers.add(new ShardMove.Transfer(number, receiver, slots));
                }
            }
        }
        Set<String> staying = new TreeSet<>();
        for (Shard shard : move.shards()) {
            staying.addAll(call(
                    "Reading the streams that stay",
                    shard,
                    () -> shard.require().read(c -> shard.tables().moves().staying(c))));
        }
        return new ShardMove(
                List.copyOf(plan.shards()),
                plan.isEmpty() ? move.version() - 1 : move.version(),
                move.state(),
                shares,
                transfers,
                streams.all().stream()
                        .map(StreamSpec::name)
                        .filter(stream -> !staying.contains(stream))
                        .toList(),
                List.copyOf(staying));
    }
}
