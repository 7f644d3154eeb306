package io.eventsql.internal.consume;

import io.eventsql.internal.consume.OffsetCommitter.Uncommitted;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.OffsetTable.OfConsumer;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Commits the offsets of several members of this process on one shard in one statement: a transaction costs the database more than
 * the offsets of a partition. Used by the commit thread alone.
 */
final class SharedCommit {
    private static final Logger LOG = LoggerFactory.getLogger(SharedCommit.class);
    /** So that a statement is short, also where each member has many partitions. */
    static final int MEMBERS_MAX = 100;

    private final Shard shard;

    SharedCommit(Shard shard) {
        this.shard = shard;
    }

    /**
     * Commits what the members have handled.
     *
     * @param committers at most {@link #MEMBERS_MAX}
     * @return those that must commit by themselves: because another commit of them is under way, because they cannot share the
     *     statement, or because it failed, which one of them may be the reason of. They report what fails
     * @throws SQLException if there is no connection
     */
    List<OffsetCommitter> commit(List<OffsetCommitter> committers) throws SQLException {
        List<OffsetCommitter> alone = new ArrayList<>();
        List<OffsetCommitter> begun = new ArrayList<>();
        try {
            Map<OffsetCommitter, Uncommitted> shared = new LinkedHashMap<>();
            Set<Integer> consumers = new HashSet<>();
            @Nullable String incarnation = null;
            for (OffsetCommitter committer : committers) {
                if (!committer.tryBegin()) {
                    alone.add(committer);
                    continue;
                }
                begun.add(committer);
                Uncommitted own = committer.uncommitted();
                if (own.handled().isEmpty()) {
                    continue;
                }
                String its = own.taker().incarnation();
                incarnation = shared.isEmpty() ? its : incarnation;
                // The answer names partitions of consumers, not members: one of two may have lost a partition to the
                // other.
                if (Objects.equals(its, incarnation)
                        && consumers.add(own.taker().consumerId())) {
                    shared.put(committer, own);
                } else {
                    alone.add(committer);
                }
            }
            alone.addAll(shared.size() < 2 ? shared.keySet() : commit(incarnation, shared));
        } finally {
            begun.forEach(OffsetCommitter::end);
        }
        return alone;
    }

    /** Returns whether there is no connection; a timeout may be due to the rows of one member. */
    static boolean isUnavailable(SQLException e) {
        return SqlErrors.isConnectionLost(e) && !SqlErrors.isTimeout(e);
    }

    /** Commits in one statement; returns those of which nothing or not everything was committed or compared. */
    private Collection<OffsetCommitter> commit(@Nullable String incarnation, Map<OffsetCommitter, Uncommitted> shared)
            throws SQLException {
        List<OfConsumer> commits = shared.values().stream()
                .map(own -> new OfConsumer(own.taker().consumerId(), own.handled()))
                .toList();
        Map<Integer, Set<Integer>> committed;
        try {
            committed = shard.require()
                    .call(connection -> shard.tables().offsets().commit(connection, incarnation, commits));
        } catch (SQLException e) {
            if (isUnavailable(e)) {
                throw e;
            }
            LOG.debug(
                    "Committing the offsets of {} members on {} failed; each commits by itself",
                    shared.size(),
                    shard,
                    e);
            return shared.keySet();
        }
        List<OffsetCommitter> unclear = new ArrayList<>();
        shared.forEach((committer, own) -> {
            try {
                committer.record(own, committed.getOrDefault(own.taker().consumerId(), Set.of()));
            } catch (SQLException e) {
                LOG.debug("Comparing the offsets of a member on {} failed; it commits by itself", shard, e);
                unclear.add(committer);
            }
        });
        return unclear;
    }
}
