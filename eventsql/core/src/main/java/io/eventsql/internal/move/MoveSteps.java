package io.eventsql.internal.move;

import static io.eventsql.internal.move.ShardCalls.call;
import static io.eventsql.internal.move.ShardCalls.step;
import static io.eventsql.internal.move.ShardCalls.transaction;

import io.eventsql.ShardMove.State;
import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.MoveFunctions.End;
import io.eventsql.internal.sql.MoveFunctions.Stationary;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.wake.WakeUp;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The steps of a move that was decided. Each is one transaction on one shard, and does nothing if it was taken before. Thread-safe. */
final class MoveSteps {
    private final StreamRegistry streams;
    private final WakeUp wakeUp;
    private final Receivers receivers;

    MoveSteps(StreamRegistry streams, WakeUp wakeUp) {
        this.streams = streams;
        this.wakeUp = wakeUp;
        this.receivers = new Receivers(streams);
    }

    /** Takes the steps that are left. */
    void complete(Move move) {
        if (move.state() != State.MOVING) {
            join(move);
            keep(move);
            prepare(move);
            step(
                    "Closing slots",
                    move.decider(),
                    c -> move.decider().tables().moves().beginClosing(c, move.version(), move.attempt()));
        }
        for (Shard giver : givers(move)) {
            step(
                    "Closing slots",
                    giver,
                    c -> giver.tables()
                            .moves()
                            .close(c, move.version(), move.plan().after()));
        }
        open(move);
        finish(move);
        receivers(move).forEach(this::signalConsumers);
    }

    private static List<Shard> givers(Move move) {
        return move.shards().stream()
                .filter(shard -> move.plan().givers().contains(shard.number()))
                .toList();
    }

    private static List<Shard> receivers(Move move) {
        return move.shards().stream()
                .filter(shard -> move.plan().receivers().contains(shard.number()))
                .toList();
    }

    /** From now on no shard gets another stream whose keys stay. */
    private static void join(Move move) {
        for (Shard shard : move.shards()) {
            if (shard != move.decider()) {
                boolean receives = move.plan().receivers().contains(shard.number());
                step(
                        "Joining the move",
                        shard,
                        c -> shard.tables()
                                .moves()
                                .join(c, move.version(), move.plan().after(), move.attempt(), receives));
            }
        }
    }

    /** Lets all shards know what stays on each of them: who knows later that a slot has moved knows that, too. */
    private void keep(Move move) {
        List<Stationary> recorded = new ArrayList<>();
        for (Shard shard : move.shards()) {
            recorded.addAll(call(
                    "Reading the streams that stay",
                    shard,
                    () -> shard.require().read(c -> shard.tables().moves().stationary(c))));
        }
        Map<String, Stationary> kept = new TreeMap<>();
        recorded.stream()
                .sorted(Comparator.comparing(Stationary::isOnSpareShard))
                .forEach(stream -> kept.putIfAbsent(stream.stream(), stream));
        if (kept.isEmpty()) {
            return;
        }
        for (Shard shard : move.shards()) {
            step(
                    "Keeping streams",
                    shard,
                    c -> shard.tables().moves().keep(c, move.version(), move.attempt(), kept.values()));
        }
        for (StreamSpec stream : streams.all()) {
            if (kept.containsKey(stream.name())) { // so that each shard says of the stream that it stays
                move.shards().forEach(shard -> call("Creating a stream", shard, () -> create(shard, stream)));
            }
        }
    }

    private static boolean create(Shard shard, StreamSpec stream) throws SQLException {
        if (!Receivers.isBeingDeleted(shard, stream)) {
            shard.streams().readOrCreate(stream);
        }
        return true;
    }

    private void prepare(Move move) {
        for (Shard receiver : receivers(move)) {
            call("Preparing to receive slots", receiver, () -> {
                prepareStreams(receiver, move);
                transaction(receiver, c -> receiver.tables().moves().freeze(c, move.version(), move.attempt()));
                return true;
            });
        }
    }

    private void prepareStreams(Shard receiver, Move move) throws SQLException {
        receiver.readSlots();
        if (receiver.mapVersion() >= move.version()) {
            return; // another process has completed the move
        }
        for (StreamSpec stream : streams.all()) {
            receivers.prepare(receiver, stream, move.plan(), move.version(), move.attempt());
        }
    }

    /** Prepares what was created since, and opens all receivers. All givers have closed. */
    private void open(Move move) {
        List<Integer> numbers = new ArrayList<>();
        List<End> ends = new ArrayList<>();
        for (Shard giver : givers(move)) {
            for (End end : call(
                    "Reading the ends",
                    giver,
                    () -> giver.require().read(c -> giver.tables().moves().ends(c, move.version())))) {
                numbers.add(giver.number());
                ends.add(end);
            }
        }
        for (Shard receiver : receivers(move)) {
            call("Opening slots", receiver, () -> {
                receiver.readSlots();
                if (receiver.mapVersion() < move.version()) { // it is opened before it has the map
                    prepareStreams(receiver, move);
                    receivers.registerConsumers(receiver, givers(move));
                    transaction(receiver, c -> receiver.tables().moves().open(c, move.version(), numbers, ends));
                }
                return true;
            });
        }
    }

    /** The shard where it was decided is the last one: until then other moves are rejected. */
    private void finish(Move move) {
        List<Shard> deciderLast = new ArrayList<>(move.shards());
        deciderLast.remove(move.decider());
        deciderLast.add(move.decider());
        for (Shard shard : deciderLast) {
            call("Recording the slots", shard, () -> finish(shard, move));
        }
    }

    private boolean finish(Shard shard, Move move) throws SQLException {
        try {
            transaction(
                    shard,
                    c -> shard.tables()
                            .moves()
                            .finish(c, move.version(), move.plan().after()));
            return true;
        } catch (SQLException e) {
            if (SqlErrors.state(e).equals(SqlErrors.NOT_PREPARED)) {
                open(move);
            }
            throw e;
        } finally {
            shard.readSlots();
        }
    }

    private void signalConsumers(Shard shard) {
        for (StreamSpec stream : streams.all()) {
            call("Signalling consumers", shard, () -> {
                if (!Receivers.isBeingDeleted(shard, stream)) {
                    wakeUp.consumersChanged(shard, shard.streams().ensure(stream));
                }
                return true;
            });
        }
    }
}
