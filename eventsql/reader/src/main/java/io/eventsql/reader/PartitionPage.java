package io.eventsql.reader;

import java.util.List;

/**
 * A part of a partition.
 *
 * @param partition the partition
 * @param events the events, by offset. Offsets are missing where compaction has removed events, and only there.
 * @param next where to continue; the same offset as before if there is nothing new
 * @param isAtHead whether there was no further event when the page was read
 */
public record PartitionPage(StreamPartition partition, List<LogEvent> events, ReadPosition next, boolean isAtHead) {}
