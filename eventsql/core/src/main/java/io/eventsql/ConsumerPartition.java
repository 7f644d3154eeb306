package io.eventsql;

/**
 * One partition of a consumer's stream.
 *
 * @param stream the stream
 * @param consumer the consumer
 * @param shard the shard's number
 * @param partition the partition on that shard
 */
public record ConsumerPartition(String stream, String consumer, int shard, int partition) {
    @Override
    public String toString() {
        return "partition " + partition + " of stream " + stream + " on shard " + shard + " for consumer " + consumer;
    }
}
