package io.eventsql.internal.consume;

import io.eventsql.ConsumerListener.Reason;
import io.eventsql.OutOfRangePolicy;
import io.eventsql.internal.shard.Shard;
import java.sql.SQLException;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Applies the {@link OutOfRangePolicy} to a partition whose next offset is not in the log. Thread-safe. */
final class OutOfRangeResolver {
    private static final Logger LOG = LoggerFactory.getLogger(OutOfRangeResolver.class);

    private final Shard shard;
    private final ShardMember member;
    private final Failures failures;
    private final HandlerThreads threads;
    private final HeartbeatSchedule heartbeats;
    /** What is being resolved: the next poll must not begin it again. */
    private final Set<Assignment> resolving = ConcurrentHashMap.newKeySet();

    OutOfRangeResolver(
            Shard shard, ShardMember member, Failures failures, HandlerThreads threads, HeartbeatSchedule heartbeats) {
        this.shard = shard;
        this.member = member;
        this.failures = failures;
        this.threads = threads;
        this.heartbeats = heartbeats;
    }

    /** Stops the partition or moves it to an offset that exists, on a thread of its own: storing that may be retried. */
    void resolve(Assignment assignment, long next, long logStart, long head) {
        if (!resolving.add(assignment)) {
            return;
        }
        try {
            threads.execute(() -> {
                try {
                    resolveNow(assignment, next, logStart, head);
                } catch (Throwable e) {
                    failures.abort(assignment, e);
                } finally {
                    resolving.remove(assignment);
                }
            });
        } catch (Throwable e) { // the member is closed, or there is no memory for a thread
            resolving.remove(assignment);
            LOG.warn("{}: offset {} is not in the log; retrying at the next poll", assignment.name(), next, e);
        }
    }

    private void resolveNow(Assignment assignment, long next, long logStart, long head) {
        OutOfRangePolicy policy = member.spec().outOfRangePolicy();
        if (next > head) {
            failures.stop(
                    assignment,
                    "offset " + next + " is beyond the log's head " + head
                            + ": the log has lost its end, or it is another log");
        } else if (policy == OutOfRangePolicy.FAIL) {
            failures.stop(assignment, "offset " + next + " no longer exists: the log begins at " + logStart);
        } else {
            move(assignment, next, policy == OutOfRangePolicy.EARLIEST ? logStart : head);
        }
    }

    private void move(Assignment assignment, long from, long to) {
        try {
            shard.require()
                    .transaction(c -> shard.tables()
                            .leases()
                            .seekAtEpoch(
                                    c,
                                    assignment.incarnation(),
                                    assignment.consumerId(),
                                    assignment.partition(),
                                    to,
                                    assignment.epoch()));
            LOG.warn("{}: offset {} no longer exists; resuming at {}", assignment.name(), from, to);
            member.remove(assignment, Reason.LOST);
        } catch (SQLException e) {
            LOG.warn(
                    "{}: offset {} no longer exists, and moving to {} failed; retrying at the next poll: {}",
                    assignment.name(),
                    from,
                    to,
                    e.toString());
        }
        heartbeats.requestHeartbeat();
    }
}
