package io.eventsql.internal.consume;

import io.eventsql.ConsumerListener.Reason;
import io.eventsql.ConsumerSpec;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Tables;
import io.eventsql.internal.sql.ConsumerTable.Offset;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.PartitionTable.Head;
import io.eventsql.internal.sql.StreamTable;
import java.sql.SQLException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lets members continue after the database of their shard has got another incarnation: ends what they own, because epochs
 * and offsets of a lost history fence nothing; registers the consumer again, because its id may be another one; and reports
 * what was lost. Used by the lease keeper's thread alone.
 */
final class HistoryRecovery {
    private static final Logger LOG = LoggerFactory.getLogger(HistoryRecovery.class);

    private final Shard shard;
    private final Duration answerTimeout;
    /** What members owned in the former incarnation, until it has been compared with the database. */
    private final Map<ShardMember, List<Assignment>> ended = new HashMap<>();

    HistoryRecovery(Shard shard, Duration answerTimeout) {
        this.shard = shard;
        this.answerTimeout = answerTimeout;
    }

    /** Returns whether the ids that the member has are those of the database's incarnation. */
    boolean isCurrent(ShardMember member) throws SQLException {
        return member.membership().incarnation().equals(shard.incarnation());
    }

    /**
     * Ends what the member owns, and lets it continue in the database's incarnation, unless it is closed.
     *
     * @return whether it continues
     * @throws SQLException if the database is unavailable, or has changed again; repeat the call
     */
    boolean recover(ShardMember member) throws SQLException {
        List<Assignment> owned = ended.computeIfAbsent(member, ShardMember::assignments);
        owned.forEach(assignment -> member.remove(assignment, Reason.HISTORY_CHANGED));
        if (member.isClosed()) {
            return false;
        }
        Membership former = member.membership();
        String incarnation = shard.incarnation(); // before the ids
        StreamTable.Row stream = shard.readOrCreateStream(former.stream());
        Stored stored;
        try {
            Database database = shard.require().withNetworkTimeout(answerTimeout);
            stored = database.transaction(c -> {
                Tables tables = shard.tables();
                ConsumerSpec spec = former.spec();
                boolean isNew =
                        tables.consumers().id(c, stream.id(), spec.name()).isEmpty();
                int id = tables.consumers().register(c, stream.id(), spec.stream(), spec.name(), spec.startPosition());
                return new Stored(
                        isNew,
                        id,
                        tables.consumers().offsets(c, incarnation, id),
                        tables.partitions().heads(c, incarnation, new int[] {stream.id()}));
            });
        } catch (SQLException e) {
            shard.recheckAfter(e, incarnation);
            throw e;
        }
        member.replaceMembership(former.in(incarnation, stored.consumerId(), stream));
        ended.remove(member);
        if (stored.isNew()) {
            LOG.error(
                    "Consumer {} of stream {} no longer existed on {}, which was restored to a time before it; registered it"
                            + " again, at {}",
                    former.spec().name(),
                    former.spec().stream(),
                    shard,
                    former.spec().startPosition());
        }
        owned.forEach(assignment -> compare(member, assignment, stored));
        return true;
    }

    /** What the database has stored for the consumer. */
    private record Stored(boolean isNew, int consumerId, List<Offset> offsets, List<Head> heads) {}

    private static void compare(ShardMember member, Assignment assignment, Stored stored) {
        int partition = assignment.partition();
        long committed = assignment.committedOffset();
        long fetched = assignment.fetchedOffset();
        Optional<Offset> offset = stored.offsets().stream()
                .filter(o -> o.partition() == partition)
                .findFirst();
        long head = stored.heads().stream()
                .filter(h -> h.partition() == partition)
                .mapToLong(Head::head)
                .findFirst()
                .orElse(0);
        long next = offset.map(Offset::nextOffset).orElse(committed);
        if (next < committed) {
            member.reportLost(assignment, next, Math.max(committed, head < fetched ? fetched : 0));
        } else if (head < fetched) {
            member.reportLost(assignment, head, fetched);
        }
    }

    /** Forgets a member that has left. */
    void forget(ShardMember member) {
        ended.remove(member);
    }
}
