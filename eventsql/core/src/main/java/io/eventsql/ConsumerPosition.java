package io.eventsql;

/**
 * How far a consumer is in one partition.
 *
 * @param shard the shard's number
 * @param partition the partition on that shard
 * @param nextOffset the offset the consumer handles next
 * @param head the offset the next published event will get
 * @param logStart the first offset that still exists
 * @param epoch how often the partition was taken by a member
 */
public record ConsumerPosition(int shard, int partition, long nextOffset, long head, long logStart, long epoch) {

    /** How many stored events the consumer has not handled yet. */
    public long lag() {
        return head - Math.max(nextOffset, logStart);
    }
}
