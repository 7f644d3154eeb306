package io.eventsql.internal.consume;

import io.eventsql.ConsumerListener.Reason;
import io.eventsql.internal.sql.LeaseTable.HeartbeatReply;
import java.time.Duration;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Applies the reply to a heartbeat to the assignments of its member: which it keeps, and which it drains. Thread-safe. */
final class LeaseRenewals {
    private static final Logger LOG = LoggerFactory.getLogger(LeaseRenewals.class);

    private final Duration lease;
    private final Listeners listeners;

    LeaseRenewals(Duration lease, Listeners listeners) {
        this.lease = lease;
        this.listeners = listeners;
    }

    void apply(Heartbeat heartbeat, HeartbeatReply reply) {
        keepRenewed(heartbeat, reply);
        drainSurplus(heartbeat.participant().member(), reply.share());
    }

    /** Rule 2 (Renew): a lease that was not renewed is lost, because the partition was moved or another member took it. */
    private void keepRenewed(Heartbeat heartbeat, HeartbeatReply reply) {
        ShardMember member = heartbeat.participant().member();
        for (Assignment assignment : heartbeat.assignments()) {
            int partition = assignment.partition();
            if (reply.renewed().contains(partition)) {
                assignment.renewLease(heartbeat.sentAt() + lease.toNanos());
                if (reply.revoked().contains(partition)) {
                    assignment.drain();
                } else if (reply.toRedrive().contains(partition) && assignment.requestRedrive()) {
                    heartbeat.participant().dispatcher().start(assignment);
                }
            } else if (heartbeat.request().held().contains(partition)) {
                LOG.info("Lost {}: its lease was not renewed", assignment.name());
                member.remove(assignment, Reason.LOST);
            } else if (!assignment.hasEnded()) {
                releaseTimedOut(member, assignment);
            }
        }
    }

    private void releaseTimedOut(ShardMember member, Assignment assignment) {
        Duration running = Duration.ofNanos(assignment.calls().longestNanos());
        LOG.error(
                "Handler of {} exceeded handlerTimeout ({}), running for {}; releasing the partition",
                assignment.name(),
                assignment.spec().handlerTimeout(),
                running);
        listeners.call(l -> l.handlerTimedOut(assignment.name(), running));
        member.remove(assignment, Reason.LOST);
    }

    private static void drainSurplus(ShardMember member, int share) {
        List<Assignment> kept = member.assignments().stream()
                .filter(assignment -> !assignment.isDraining())
                .toList();
        for (int i = share; i < kept.size(); i++) {
            kept.get(i).drain();
        }
    }
}
