package io.eventsql.internal.consume;

import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.wake.WakeUp;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How a closed member leaves one shard: its last commit, and then it counts no more, so that others may take its share.
 * Done by the lease keeper's thread, because a heartbeat after it would make the member count again.
 */
final class MemberDeregistration {
    private static final Logger LOG = LoggerFactory.getLogger(MemberDeregistration.class);

    private final Shard shard;
    private final Duration answerTimeout;
    private final WakeUp wakeUp;

    MemberDeregistration(Shard shard, Duration answerTimeout, WakeUp wakeUp) {
        this.shard = shard;
        this.answerTimeout = answerTimeout;
        this.wakeUp = wakeUp;
    }

    /** Returns {@code false} if it failed and there is time to try once more: a connection may just have broken. */
    boolean leave(ShardMember member) {
        try {
            commitAndLeave(member);
        } catch (SQLException | RuntimeException e) {
            if (member.mayTryLeavingAgain()) {
                return false;
            }
            LOG.warn(
                    "The last offsets of consumer {} on {} are not committed, events are handled again: {}",
                    member.spec().name(),
                    shard,
                    e.toString());
        }
        return true;
    }

    private void commitAndLeave(ShardMember member) throws SQLException {
        List<Integer> ended = member.partitions().stream()
                .filter(p -> !p.isHandling())
                .map(OwnedPartition::partition)
                .toList();
        member.threads().committer().commit(member);
        shard.require().answeringWithin(answerTimeout).call(connection -> {
            shard.tables().leases().release(connection, member.consumerId(), member.memberId(), ended);
            shard.tables().leases().leave(connection, member.consumerId(), member.memberId());
            return ended;
        });
        wakeUp.consumerChanged(shard, member.consumerId());
    }
}
