package io.eventsql.internal.relay;

import io.eventsql.internal.shard.KeyHash;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.SlotMap;
import io.eventsql.internal.sql.RelayTable.RelayLease;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.sql.TransferTable.Row;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/**
 * The events of an outbox that are addressed to one shard although their keys belong to other ones by now: they are addressed to
 * those. Used by one thread.
 */
final class MovedEvents {
    private final OutboxDatabase outbox;
    private final Shard shard;
    private final Shards shards;

    MovedEvents(OutboxDatabase outbox, Shard shard, Shards shards) {
        this.outbox = outbox;
        this.shard = shard;
        this.shards = shards;
    }

    /** Those of a page. */
    static final class Found {
        private final List<Long> numbers = new ArrayList<>();
        private final List<Integer> owners = new ArrayList<>();
        private final Set<String> streams = new HashSet<>();

        void add(Row event, int owner) {
            numbers.add(event.number());
            owners.add(owner);
            streams.add(event.stream());
        }

        boolean isEmpty() {
            return numbers.isEmpty();
        }

        /** Returns the numbers of the shards that they belong to. */
        Set<Integer> shards() {
            return new TreeSet<>(owners);
        }
    }

    /** Returns the shard that an event belongs to now. Those without a key stay, unless the shard has left. */
    int owner(Row event, SlotMap slots) {
        String key = event.key();
        if (key != null) {
            return slots.owner(KeyHash.slot(KeyHash.of(key)));
        } else if (slots.hasSlots(shard.number())) {
            return shard.number();
        }
        List<Integer> others = shards.numbered().stream()
                .map(Shard::number)
                .filter(slots::hasSlots)
                .toList();
        return others.get(event.partition() % others.size());
    }

    /**
     * Reads the streams of events that seem to belong elsewhere once more: a stream may stay while the slots of others move.
     * Reads them there, too, because a shard that has closed slots says so itself: sent back to it, the events would arrive
     * after later ones of their keys. Not if this shard knows a later slot map: then it has closed the slots.
     */
    boolean areSlotsCurrent(Found found) throws SQLException {
        SlotMap before = shards.slots();
        try {
            readSlots(shard, found.streams);
        } catch (SQLException e) {
            throw new Sender.ShardFailedException(e);
        }
        for (int number : found.shards()) {
            Shard owner = shards.get(number);
            // If it is not configured, this process cannot send to it, either.
            if (owner.isConfigured() && owner.mapVersion() >= shard.mapVersion()) {
                try {
                    readSlots(owner, found.streams);
                } catch (SQLException e) {
                    throw new SQLException(
                            "keys have moved to " + owner + ", which is unavailable: " + SqlErrors.message(e),
                            e.getSQLState(),
                            e);
                }
            }
        }
        return shards.slots() == before;
    }

    private static void readSlots(Shard of, Set<String> streamNames) throws SQLException {
        for (String stream : streamNames) {
            if (of.streams().find(stream).isEmpty()) {
                of.readSlots();
            }
        }
    }

    /**
     * Addresses them to the shards that they belong to.
     *
     * @throws SQLException {@link SqlErrors#RELAY_LOST} if the lease has ended
     */
    void readdress(RelayLease lease, Found found) throws SQLException {
        outbox.database().transaction(connection -> {
            outbox.tables().relay().lock(connection, lease);
            outbox.tables().transfer().readdress(connection, shard.number(), found.numbers, found.owners);
            return found;
        });
    }
}
