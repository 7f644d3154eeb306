package io.eventsql.internal.move;

import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.KeyTracking;
import io.eventsql.ShardMove;
import io.eventsql.ShardMove.State;
import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.ErrorKind;
import io.eventsql.internal.sql.MoveFunctions.End;
import io.eventsql.internal.sql.MoveFunctions.StoredMove;
import io.eventsql.internal.sql.ShardIdentity;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.wake.WakeUp;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Moves keys between shards. Everything it does is in the databases, and each step can be repeated: whatever process calls it next,
 * after a crash at any place, completes it. Thread-safe.
 */
public final class ShardMover {
    private static final Logger LOG = LoggerFactory.getLogger(ShardMover.class);
    private static final int ATTEMPTS_MAX = 40;
    private static final long RETRY_MS = 100;

    private final Shards shards;
    private final StreamRegistry streams;
    private final WakeUp wakeUp;
    private final Receivers receivers;

    public ShardMover(Shards shards, StreamRegistry streams, WakeUp wakeUp) {
        this.shards = shards;
        this.streams = streams;
        this.wakeUp = wakeUp;
        this.receivers = new Receivers(streams);
    }

    /**
     * A move.
     *
     * @param version the version of the slot map afterwards
     * @param decider the shard where it is decided: the first one that has slots before
     * @param stored what that shard knows of it; empty: nothing has been done
     */
    private record Move(SlotPlan plan, int version, Shard decider, Optional<StoredMove> stored) {
        State state() {
            if (plan.isEmpty()) {
                return State.DONE;
            }
            return stored.map(move -> move.isClosing() ? State.MOVING : State.PREPARING)
                    .orElse(State.PENDING);
        }
    }

    /** See {@link io.eventsql.EventSql#previewShards}. */
    public ShardMove preview(Collection<Integer> target) {
        return describe(find(requireKnown(target)));
    }

    /** See {@link io.eventsql.EventSql#moveShards}. */
    public ShardMove move(Collection<Integer> target) {
        Set<Integer> wanted = requireKnown(target);
        Move move = find(wanted);
        if (move.plan().isEmpty()) {
            return describe(move);
        }
        if (move.stored().isEmpty()) {
            requireMovable();
            decide(move);
            move = find(wanted); // another process may have been faster
        }
        long beganAt = System.nanoTime();
        run(move);
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
        for (Shard shard : shards.all()) {
            boolean canceled = call(
                    "Cancelling the move",
                    shard,
                    () -> transaction(shard, c -> shard.tables().moves().cancel(c)));
            if (!canceled) {
                throw new EventSqlException(
                        "The move cannot be cancelled any more, because keys have moved: complete it");
            }
        }
        for (Shard shard : shards.all()) {
            call(
                    "Cancelling the move",
                    shard,
                    () -> transaction(shard, c -> {
                        shard.tables().moves().cancelReceiving(c);
                        return true;
                    }));
        }
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

    /** Rejects a move of streams whose state per key would have to move, too. */
    private void requireMovable() {
        for (StreamSpec stream : streams.all()) {
            if (stream.compaction() != null) {
                throw cannotMove(stream, "has compaction, which would keep a former event of each key that moves");
            } else if (stream.keyTracking() != KeyTracking.OFF) {
                throw cannotMove(stream, "counts the events of its keys in their partitions");
            }
        }
        for (Shard shard : shards.all()) {
            call(
                            "Reading the sinks",
                            shard,
                            () -> shard.require()
                                    .read(c -> shard.tables().moves().findSink(c)))
                    .ifPresent(sink -> {
                        throw new InvalidInputException(
                                "shards",
                                "cannot change: sink " + sink
                                        + " of an engine writes by the slots as they are. Delete it"
                                        + " when no job uses it");
                    });
        }
    }

    private static InvalidInputException cannotMove(StreamSpec stream, String reason) {
        return new InvalidInputException("shards", "cannot change: stream " + stream.name() + " " + reason);
    }

    /** Returns the move in progress, or the one to the given shards. */
    private Move find(Set<Integer> wanted) {
        @Nullable ShardIdentity newest = null;
        for (Shard shard : shards.all()) {
            ShardIdentity identity = call(
                    "Reading the slots",
                    shard,
                    () -> shard.require()
                            .read(c -> shard.tables().shards().find(c).orElseThrow()));
            // A move that was decided is the current one until its shard, the last one, has the map.
            Optional<StoredMove> stored = call(
                    "Reading the move",
                    shard,
                    () -> shard.require()
                            .read(c -> shard.tables().moves().find(c).filter(StoredMove::isPlan)));
            if (stored.isPresent()) {
                SlotPlan plan =
                        new SlotPlan(identity.finishedMap(), stored.get().slotMap());
                if (!plan.shards().equals(wanted)) {
                    throw new EventSqlException("Keys are being moved to the shards " + plan.shards()
                            + "; complete that with moveShards, or cancel it with cancelShardMove");
                }
                return new Move(plan, stored.get().version(), shard, stored);
            }
            newest = newest == null || identity.finishedVersion() > newest.finishedVersion() ? identity : newest;
        }
        int[] before = Objects.requireNonNull(newest).finishedMap();
        Shard decider = shards.get(Arrays.stream(before).min().orElseThrow());
        return new Move(SlotPlan.of(before, wanted), newest.finishedVersion() + 1, decider, Optional.empty());
    }

    private void decide(Move move) {
        Shard decider = move.decider();
        boolean receives = move.plan().receivers().contains(decider.number());
        call(
                "Deciding the move",
                decider,
                () -> transaction(decider, c -> {
                    decider.tables().moves().plan(c, move.version(), move.plan().after(), true, receives);
                    return true;
                }));
    }

    private void run(Move move) {
        SlotPlan plan = move.plan();
        int[] after = plan.after();
        int version = move.version();
        if (move.state() != State.MOVING) {
            prepareAll(move);
            call(
                    "Closing slots",
                    move.decider(),
                    () -> transaction(move.decider(), c -> {
                        move.decider().tables().moves().beginClosing(c, version, after);
                        return true;
                    }));
        }
        for (int number : plan.givers()) {
            Shard giver = shards.get(number);
            call(
                    "Closing slots",
                    giver,
                    () -> transaction(giver, c -> {
                        giver.tables().moves().close(c, version, after);
                        return true;
                    }));
        }
        openAll(move);
        List<Shard> deciderLast = new ArrayList<>(shards.all());
        deciderLast.remove(move.decider());
        deciderLast.add(move.decider());
        for (Shard shard : deciderLast) {
            call("Recording the slots", shard, () -> finish(shard, move));
        }
        for (int number : plan.receivers()) {
            signalConsumers(shards.get(number));
        }
    }

    private void prepareAll(Move move) {
        for (int number : move.plan().receivers()) {
            Shard receiver = shards.get(number);
            call("Preparing to receive slots", receiver, () -> {
                if (receiver != move.decider()) {
                    transaction(receiver, c -> {
                        receiver.tables()
                                .moves()
                                .plan(c, move.version(), move.plan().after(), false, true);
                        return true;
                    });
                }
                return true;
            });
            for (StreamSpec stream : streams.all()) {
                call(
                        "Preparing stream " + stream.name(),
                        receiver,
                        () -> receivers.prepare(receiver, stream, move.plan(), move.version()));
            }
        }
    }

    /** Prepares what was created since, and opens all receivers. All givers have closed. */
    private void openAll(Move move) {
        List<Integer> givers = new ArrayList<>();
        List<End> ends = new ArrayList<>();
        for (int number : move.plan().givers()) {
            Shard giver = shards.get(number);
            for (End end : call(
                    "Reading the ends",
                    giver,
                    () -> giver.require().read(c -> giver.tables().moves().ends(c, move.version())))) {
                givers.add(number);
                ends.add(end);
            }
        }
        List<Shard> closed = move.plan().givers().stream().map(shards::get).toList();
        for (int number : move.plan().receivers()) {
            Shard receiver = shards.get(number);
            call("Opening slots", receiver, () -> {
                for (StreamSpec stream : streams.all()) {
                    receivers.prepare(receiver, stream, move.plan(), move.version());
                }
                receivers.registerConsumers(receiver, closed);
                return transaction(receiver, c -> {
                    receiver.tables().moves().open(c, move.version(), givers, ends);
                    return true;
                });
            });
        }
    }

    private boolean finish(Shard shard, Move move) throws SQLException {
        try {
            return transaction(shard, c -> {
                shard.tables().moves().finish(c, move.version(), move.plan().after());
                return true;
            });
        } catch (SQLException e) {
            if (SqlErrors.state(e).equals(SqlErrors.NOT_PREPARED)) {
                openAll(move);
            }
            throw e;
        } finally {
            shard.readSlots();
        }
    }

    private void signalConsumers(Shard shard) {
        for (StreamSpec stream : streams.all()) {
            call("Signalling consumers", shard, () -> {
                int id = shard.ensureStream(stream);
                for (int consumer :
                        shard.require().read(c -> shard.tables().consumers().ids(c, id))) {
                    wakeUp.consumerChanged(shard, consumer);
                }
                return true;
            });
        }
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
        return new ShardMove(
                List.copyOf(plan.shards()),
                plan.isEmpty() ? move.version() - 1 : move.version(),
                move.state(),
                shares,
                transfers,
                streams.all().stream().map(StreamSpec::name).toList());
    }

    private interface Statements<T> {
        T run(java.sql.Connection connection) throws SQLException;
    }

    private static <T> T transaction(Shard shard, Statements<T> statements) throws SQLException {
        return shard.require().replicatedTransaction(statements::run);
    }

    private <T> T call(String action, Shard shard, Callable<T> step) {
        String failure = action + " on " + shard + " failed";
        for (int attempt = 1; ; attempt++) {
            try {
                return step.call();
            } catch (SQLException e) {
                boolean mayPass = SqlErrors.classify(e) != ErrorKind.CONTENT && attempt < ATTEMPTS_MAX;
                if (!mayPass || Thread.currentThread().isInterrupted()) {
                    throw new EventSqlException(failure + "; repeat the call to continue: " + SqlErrors.message(e), e);
                }
                LOG.debug("{}; retrying in {} ms", failure, RETRY_MS, e);
                pause();
            } catch (RuntimeException e) {
                throw e;
            } catch (Exception e) {
                throw new EventSqlException(failure, e);
            }
        }
    }

    /** An interrupt ends the call after the current attempt. */
    private static void pause() {
        try {
            TimeUnit.MILLISECONDS.sleep(RETRY_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
