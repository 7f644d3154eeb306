package io.eventsql.internal.consume;

import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.StreamSpec;
import io.eventsql.internal.sql.StreamTable;
import java.util.UUID;

/**
 * The identity of a member on one shard. The ids of the consumer and the stream are those of one incarnation of the shard's
 * database.
 *
 * @param memberId the member's id, the same on all shards
 * @param memberName the host, process and number of the member, for operators
 * @param shard the shard's number
 * @param incarnation that of the shard's database when the ids were read
 * @param consumerId the consumer's id on the shard
 * @param streamId the stream's id on the shard
 */
record Membership(
        UUID memberId,
        String memberName,
        int shard,
        String incarnation,
        int consumerId,
        int streamId,
        ConsumerSpec spec,
        StreamSpec stream) {
    /** Returns the same member with the ids that another incarnation of the database has for it. */
    Membership in(String otherIncarnation, int otherConsumerId, StreamTable.Row stored) {
        return new Membership(
                memberId, memberName, shard, otherIncarnation, otherConsumerId, stored.id(), spec, stored.spec());
    }

    /** Returns the public name of one of the consumer's partitions on the shard. */
    ConsumerPartition partition(int number) {
        return new ConsumerPartition(spec.stream(), spec.name(), shard, number);
    }
}
