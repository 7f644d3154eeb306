package io.eventsql.internal.move;

import static io.eventsql.internal.move.ShardCalls.call;
import static io.eventsql.internal.move.ShardCalls.step;

import io.eventsql.EventSqlException;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.MoveFunctions.FormerEnd;
import java.util.List;
import java.util.Optional;

/**
 * Removes a shard that has no events any more. Consumers of other shards wait for what they had to handle of it; that is the case
 * once it is empty. But they wait for it instead of those shards from which it had received keys before, so these must have lost the
 * events of that time, too.
 */
final class ShardRemoval {
    private ShardRemoval() {}

    /** @param others all other shards that have not been removed */
    static void remove(Shard shard, List<Shard> others) {
        requireNothingBefore(shard, others);
        Optional<String> reason = call(
                "Removing the shard",
                shard,
                () -> shard.require()
                        .replicatedTransaction(
                                c -> Optional.ofNullable(shard.tables().moves().remove(c))));
        if (reason.isPresent()) {
            throw notYet(shard, reason.get());
        }
        forget(shard.number(), others);
    }

    /** Lets all other shards know that a shard was removed. */
    static void forget(int number, List<Shard> others) {
        for (Shard other : others) {
            step("Removing shard " + number, other, c -> other.tables().moves().forget(c, number));
        }
    }

    private static void requireNothingBefore(Shard shard, List<Shard> others) {
        List<FormerEnd> ends = call(
                "Reading what came before",
                shard,
                () -> shard.require().read(c -> shard.tables().moves().formerEnds(c)));
        for (FormerEnd end : ends) {
            Optional<Shard> former = others.stream()
                    .filter(other -> other.number() == end.shard())
                    .findFirst();
            if (former.isEmpty()) {
                continue; // was removed itself
            }
            Shard giver = former.get();
            Optional<Long> logStart = call(
                    "Reading what came before",
                    giver,
                    () -> giver.require().read(c -> giver.tables().moves().logStart(c, end.stream(), end.partition())));
            if (logStart.isPresent() && logStart.get() < end.end()) {
                throw notYet(
                        shard,
                        "shard " + giver + " still has events of stream " + end.stream() + " in partition "
                                + end.partition() + " below offset " + end.end()
                                + ", which came before those of the shard, until its retention removes them");
            }
        }
    }

    private static EventSqlException notYet(Shard shard, String reason) {
        return new EventSqlException("Shard " + shard + " cannot be removed yet: " + reason);
    }
}
