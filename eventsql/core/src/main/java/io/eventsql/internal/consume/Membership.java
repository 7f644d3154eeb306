package io.eventsql.internal.consume;

import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.StreamSpec;
import java.util.UUID;

/**
 * The identity of a member on one shard.
 *
 * @param memberId the member's id, the same on all shards
 * @param memberName the host, process and number of the member, for operators
 * @param shard the shard's number
 * @param consumerId the consumer's id on the shard
 * @param streamId the stream's id on the shard
 */
record Membership(
        UUID memberId,
        String memberName,
        int shard,
        int consumerId,
        int streamId,
        ConsumerSpec spec,
        StreamSpec stream) {
    /** Returns the public name of one of the consumer's partitions on the shard. */
    ConsumerPartition partition(int number) {
        return new ConsumerPartition(spec.stream(), spec.name(), shard, number);
    }
}
