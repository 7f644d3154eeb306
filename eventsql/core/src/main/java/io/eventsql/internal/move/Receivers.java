package io.eventsql.internal.move;

import io.eventsql.EventSqlException;
import io.eventsql.StartPosition;
import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.PartitionMap;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.MoveFunctions.ConsumerOfStream;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.OptionalInt;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Prepares shards for the keys that they receive: each stream gets fresh partitions for them, which no consumer takes before they
 * are opened. So only these wait for the former shards, and no partition that is in use. Thread-safe.
 */
final class Receivers {
    private final StreamRegistry streams;

    Receivers(StreamRegistry streams) {
        this.streams = streams;
    }

    /** Returns whether the deletion of a stream, which others may still have, has begun on a shard: until it is complete it gets none. */
    static boolean isBeingDeleted(Shard shard, StreamSpec stream) throws SQLException {
        return shard.require().read(c -> shard.tables().deleting().hasBegun(c, stream.name()));
    }

    /** Prepares a stream, unless it is prepared, stays, or is being deleted. */
    void prepare(Shard receiver, StreamSpec stream, SlotPlan plan, int version, long attempt) throws SQLException {
        var moves = receiver.tables().moves();
        if (receiver.require().read(c -> moves.isStationary(c, stream.name())) || isBeingDeleted(receiver, stream)) {
            return;
        }
        int id = receiver.streams().readOrCreate(stream).id(); // with its tables
        if (receiver.require().read(c -> moves.isPrepared(c, id, version))) {
            return;
        }
        PartitionMap map = receiver.streams().map(stream);
        List<Integer> closed = receiver.require().read(c -> moves.closedPartitions(c, id));
        boolean isFresh = map.isWithin(closed);
        List<Integer> slots = plan.received(receiver.number());
        List<Integer> fresh;
        short[] moved;
        if (isFresh) { // the shard had no slots when the stream was created: keys are spread as on the others
            fresh = IntStream.range(0, map.partitions()).boxed().toList();
            moved = null;
        } else {
            int wanted = countFresh(map, slots.size(), plan.ownedBefore(receiver.number()));
            List<Integer> received = addPartitions(receiver, stream, id, closed, wanted);
            // A stream that was created closed has some left, if others were opened for copies of failed events.
            fresh = Stream.concat(closed.stream().filter(partition -> partition < map.partitions()), received.stream())
                    .toList();
            moved = map.moved();
            if (moved == null) {
                moved = new short[plan.after().length];
                Arrays.fill(moved, (short) -1);
            }
            for (int i = 0; i < slots.size(); i++) {
                moved[slots.get(i)] = received.get(i % received.size()).shortValue();
            }
        }
        short[] next = moved;
        receiver.require().replicatedTransaction(c -> {
            moves.receive(c, version, attempt, id, Math.abs(map.version()), next, fresh);
            return true;
        });
        receiver.streams().find(stream.name());
    }

    /** Returns how many partitions are added for received slots: about as many as there are for as many slots. */
    private static int countFresh(PartitionMap map, int received, int owned) {
        int share = owned == 0 ? map.partitions() : Math.ceilDiv(map.partitions() * received, owned);
        return Math.clamp(share, 1, Math.max(1, Math.min(received, map.partitions())));
    }

    private List<Integer> addPartitions(Shard shard, StreamSpec stream, int id, List<Integer> closed, int wanted)
            throws SQLException {
        int first = shard.streams().map(stream).partitions();
        List<Integer> unused =
                closed.stream().filter(partition -> partition >= first).toList();
        if (unused.size() < wanted) {
            // Fewer than wanted, if the stream would have too many.
            int total = Math.min(
                    StreamSpec.PARTITIONS_MAX, shard.streams().countPartitions(stream) + wanted - unused.size());
            shard.require().transaction(c -> {
                shard.tables().growth().prepare(c, id, total);
                return id;
            });
            shard.streams().create(stream); // the tables that are missing
            unused = shard.require().read(c -> shard.tables().moves().closedPartitions(c, id)).stream()
                    .filter(partition -> partition >= first)
                    .toList();
            if (unused.isEmpty()) {
                throw new EventSqlException("Stream " + stream.name() + " on " + shard + " has "
                        + StreamSpec.PARTITIONS_MAX + " partitions, so no keys can move there");
            }
        }
        return unused.subList(0, Math.min(wanted, unused.size()));
    }

    /** Registers the consumers of the givers: from the beginning, because everything there is later than what they have handled. */
    void registerConsumers(Shard receiver, List<Shard> givers) throws SQLException {
        var tables = receiver.tables();
        Set<ConsumerOfStream> missing = new HashSet<>();
        for (Shard giver : givers) {
            missing.addAll(giver.require().read(c -> tables.moves().consumers(c)));
        }
        missing.removeAll(receiver.require().read(c -> tables.moves().consumers(c)));
        for (ConsumerOfStream consumer : missing) {
            StreamSpec stream = streams.require(consumer.stream());
            OptionalInt id = receiver.streams().readId(stream);
            List<Integer> closed = id.isEmpty()
                    ? List.of()
                    : receiver.require().read(c -> tables.moves().unopened(c, id.getAsInt()));
            if (!closed.isEmpty() && receiver.streams().map(stream).isWithin(closed)) { // a stream that is all fresh
                receiver.require()
                        .transaction(c -> tables.consumers()
                                .register(
                                        c, id.getAsInt(), stream.name(), consumer.consumer(), StartPosition.EARLIEST));
            }
        }
    }
}
