package io.eventsql.internal.consume;

import io.eventsql.internal.sql.LeaseTable.HeartbeatRequest;
import java.util.List;

/**
 * What was sent for a member: the assignments as they were then, since one may be taken or removed before the reply.
 *
 * @param sentAt before it was sent (nano time)
 */
record Heartbeat(Participant participant, List<Assignment> assignments, HeartbeatRequest request, long sentAt) {
    static Heartbeat of(Participant participant, long sentAt) {
        ShardMember member = participant.member();
        List<Assignment> assignments = member.assignments();
        return new Heartbeat(participant, assignments, member.heartbeat(), sentAt);
    }
}
