package io.eventsql;

/**
 * Position of a stored event.
 *
 * @param stream the stream's name
 * @param shard the number of the shard, from 0
 * @param partition the partition on that shard, from 0
 * @param offset the offset in the partition: from 0, without gaps, in commit order
 */
public record EventPosition(String stream, int shard, int partition, long offset) {}
