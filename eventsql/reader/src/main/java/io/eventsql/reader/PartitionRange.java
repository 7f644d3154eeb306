package io.eventsql.reader;

/**
 * The offsets that a partition had when it was asked.
 *
 * @param partition the partition
 * @param logStart the first offset that still exists
 * @param head the offset that the next event will get; equal to {@code logStart} if there is no event
 */
public record PartitionRange(StreamPartition partition, long logStart, long head) {}
