package io.eventsql.internal.sql;

/**
 * A range of offsets of a partition.
 *
 * @param next the offset after the last one
 */
public record OffsetRange(long first, long next) {}
