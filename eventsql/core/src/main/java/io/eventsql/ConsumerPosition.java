package io.eventsql;

/**
 * Committed position of a consumer in one partition.
 *
 * @param shard the shard's number
 * @param partition the partition on that shard
 * @param nextOffset the offset of the next event to handle
 * @param head the offset of the next event to be published
 * @param logStart the first offset that still exists
 * @param epoch the number of times the partition was acquired or moved
 */
public record ConsumerPosition(int shard, int partition, long nextOffset, long head, long logStart, long epoch) {

    /** Returns the number of stored events not yet handled. */
    public long lag() {
        return head - Math.max(nextOffset, logStart);
    }
}
