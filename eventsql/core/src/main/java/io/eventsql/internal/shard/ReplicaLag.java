package io.eventsql.internal.shard;

import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * How far a replica is behind its primary: the difference between the last time but one that was recorded on the primary, which
 * a replica has had an interval to replay, and the last one that the replica has been seen with. So the lag of a replica that
 * does not respond grows, too, and one that does is never considered behind because the primary is idle or does not respond.
 * Thread-safe.
 */
final class ReplicaLag {
    private final Duration max;
    private @Nullable Instant primaryAt;
    private @Nullable Instant formerPrimaryAt;
    private @Nullable Instant replicaAt;
    private @Nullable String problem;

    ReplicaLag(Duration max) {
        this.max = max;
    }

    /** Forgets the replica: the primary has another incarnation, and nothing is known of the replica in it. */
    synchronized void forget() {
        primaryAt = null;
        formerPrimaryAt = null;
        replicaAt = null;
    }

    /** Records a time that was written on the primary. */
    synchronized void recordPrimary(Instant time) {
        formerPrimaryAt = primaryAt == null ? time : primaryAt;
        primaryAt = time;
    }

    /** Records the last time that the replica has. */
    synchronized void recordReplica(Instant time) {
        replicaAt = time;
        problem = null;
    }

    /** Records why the replica could not be read. */
    synchronized void recordProblem(String text) {
        problem = text;
    }

    /** Returns why the replica could not be read last; {@code null} if it could. */
    synchronized @Nullable String problem() {
        return problem;
    }

    /** Returns the lag; {@code null} if it is not known. */
    synchronized @Nullable Duration lag() {
        if (formerPrimaryAt == null || replicaAt == null) {
            return null;
        }
        Duration lag = Duration.between(replicaAt, formerPrimaryAt);
        return lag.isNegative() ? Duration.ZERO : lag;
    }

    /** Returns whether the replica is known to be at most as far behind as it may be. */
    synchronized boolean isUsable() {
        Duration lag = lag();
        return lag != null && lag.compareTo(max) <= 0;
    }
}
