package io.eventsql.internal.consume;

import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.LeaseTable.HeartbeatReply;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Sends the heartbeats of many members in one statement. If another transaction has locked rows of one of them, each gets a statement
 * of its own, so that those locks do not take the leases of the others; the locked ones are sent alone until they are answered. Used
 * by one thread.
 */
final class HeartbeatSender {
    private final Shard shard;
    private final Duration lease;
    private final Duration answerTimeout;
    private final long timeMaxNanos;
    private final Replies replies;
    /** The members whose rows another transaction had locked at their last heartbeat. */
    private final Set<Participant> locked = new HashSet<>();

    /** Takes the replies to one statement. */
    @FunctionalInterface
    interface Replies {
        /**
         * Takes them.
         *
         * @param sentAt when the statement was sent (nano time)
         */
        void apply(List<Heartbeat> heartbeats, List<HeartbeatReply> received, long sentAt) throws SQLException;
    }

    /**
     * What was not answered.
     *
     * @param members whose heartbeat is to be sent again
     * @param conflict the error of one whose rows are locked; {@code null} if all were answered
     */
    record Unanswered(List<Participant> members, @Nullable SQLException conflict) {}

    /** @param timeMax after which no further member gets a statement of its own */
    HeartbeatSender(Shard shard, Duration lease, Duration answerTimeout, Duration timeMax, Replies replies) {
        this.shard = shard;
        this.lease = lease;
        this.answerTimeout = answerTimeout;
        this.timeMaxNanos = timeMax.toNanos();
        this.replies = replies;
    }

    /** @throws SQLException any error but that of locked rows; some members may have been answered */
    Unanswered send(List<Participant> members, String incarnation, long sentAt) throws SQLException {
        List<Participant> unanswered = new ArrayList<>();
        @Nullable SQLException conflict = null;
        List<Participant> alone = sendTogether(members, incarnation, sentAt);
        for (int i = 0; i < alone.size(); i++) {
            Participant member = alone.get(i);
            SQLException failure = sendAlone(member, incarnation);
            if (failure != null) {
                conflict = failure;
                unanswered.add(member);
                if (System.nanoTime() - sentAt > timeMaxNanos) {
                    unanswered.addAll(alone.subList(i + 1, alone.size()));
                    break; // those without locks have their turn again
                }
            }
        }
        return new Unanswered(unanswered, conflict);
    }

    /** Sends one heartbeat for all members, but for those whose rows were locked at the last one; returns who needs one of its own. */
    private List<Participant> sendTogether(List<Participant> members, String incarnation, long sentAt)
            throws SQLException {
        List<Participant> together =
                members.stream().filter(member -> !locked.contains(member)).toList();
        try {
            sendFor(together, incarnation, sentAt);
        } catch (SQLException e) {
            if (!SqlErrors.isLockConflict(e)) {
                throw e;
            }
            return members.stream()
                    .sorted(Comparator.comparing(locked::contains)) // those without known locks first: the others wait
                    .toList();
        }
        return members.stream().filter(locked::contains).toList();
    }

    /** Sends a heartbeat for one member; returns the conflict. */
    private @Nullable SQLException sendAlone(Participant member, String incarnation) throws SQLException {
        try {
            sendFor(List.of(member), incarnation, System.nanoTime());
            locked.remove(member);
            return null;
        } catch (SQLException e) {
            if (!SqlErrors.isLockConflict(e)) {
                throw e;
            }
            locked.add(member);
            return e;
        }
    }

    private void sendFor(List<Participant> members, String incarnation, long sentAt) throws SQLException {
        if (!members.isEmpty()) {
            List<Heartbeat> heartbeats =
                    members.stream().map(member -> Heartbeat.of(member, sentAt)).toList();
            replies.apply(heartbeats, send(heartbeats, incarnation), sentAt);
        }
    }

    private List<HeartbeatReply> send(List<Heartbeat> heartbeats, String incarnation) throws SQLException {
        return shard.require()
                .withNetworkTimeout(answerTimeout)
                .call(connection -> shard.tables()
                        .leases()
                        .heartbeat(
                                connection,
                                incarnation,
                                shard.number(),
                                lease,
                                heartbeats.stream().map(Heartbeat::request).toList()));
    }

    /** Forgets a member that has left. */
    void remove(Participant member) {
        locked.remove(member);
    }
}
