package io.eventsql;

import org.jspecify.annotations.Nullable;

/**
 * Definition of a stream. Streams are created with {@link EventSql#createStream}. {@link EventSql#alterStream} changes all
 * but the name, the number of partitions, the storage and the key tracking. Immutable.
 *
 * @param name letters (A to Z, a to z), digits, {@code .}, {@code _} and {@code -}, starting with a letter or a digit, at
 *     most {@value #NAME_LENGTH_MAX} characters ({@code order_events}, {@code order-service}, {@code shop.orders.v1})
 * @param partitions the number of partitions on each shard, 1 to {@value #PARTITIONS_MAX}; the maximum number of members
 *     of one consumer that can share a shard
 * @param segmentSize the largest number of events per segment (one table) of a partition, {@value #SEGMENT_SIZE_MIN} to {@value
 *     #SEGMENT_SIZE_MAX}; retention removes whole segments
 * @param json whether values are JSON in UTF-8. The stream then has a view with the parsed value, named like its table
 *     with {@code __json} appended; {@code NULL} if a value is not JSON, because publishing does not check it.
 * @param retention how long events are kept
 * @param compaction whether and how earlier events of a key are removed; {@code null}: they stay. New segments of a compacted
 *     stream hold 100,000 events at most.
 * @param storage how the events are kept in tables
 * @param keyTracking whether the stream counts and indexes the events of each key
 */
public record StreamSpec(
        String name,
        int partitions,
        long segmentSize,
        boolean json,
        Retention retention,
        @Nullable Compaction compaction,
        Storage storage,
        KeyTracking keyTracking) {
    public static final int NAME_LENGTH_MAX = 100;
    public static final int PARTITIONS_MAX = 1_000;
    public static final int DEFAULT_PARTITIONS = 10;
    public static final long SEGMENT_SIZE_MIN = 100;
    public static final long SEGMENT_SIZE_MAX = 1_000_000_000;
    public static final long DEFAULT_SEGMENT_SIZE = 1_000_000;

    /**
     * Validates the definition.
     *
     * @throws InvalidInputException if a field is out of range; names the field and the limit
     */
    public StreamSpec {
        Names.requireStreamName("stream.name", name);
        InvalidInputException.requireRange("stream.partitions", partitions, 1, PARTITIONS_MAX);
        InvalidInputException.requireRange("stream.segmentSize", segmentSize, SEGMENT_SIZE_MIN, SEGMENT_SIZE_MAX);
        InvalidInputException.requireGiven("stream.retention", retention);
        InvalidInputException.requireGiven("stream.storage", storage);
        InvalidInputException.requireGiven("stream.keyTracking", keyTracking);
    }

    /** Creates a definition without key tracking. */
    public StreamSpec(
            String name,
            int partitions,
            long segmentSize,
            boolean json,
            Retention retention,
            @Nullable Compaction compaction,
            Storage storage) {
        this(name, partitions, segmentSize, json, retention, compaction, storage, KeyTracking.OFF);
    }

    /** Creates a definition of a stream that stores rows. */
    public StreamSpec(
            String name,
            int partitions,
            long segmentSize,
            boolean json,
            Retention retention,
            @Nullable Compaction compaction) {
        this(name, partitions, segmentSize, json, retention, compaction, Storage.ROWS);
    }

    /** Creates a definition without compaction. */
    public StreamSpec(String name, int partitions, long segmentSize, boolean json, Retention retention) {
        this(name, partitions, segmentSize, json, retention, null);
    }

    /** Creates a definition whose events never expire, without compaction. */
    public StreamSpec(String name, int partitions, long segmentSize, boolean json) {
        this(name, partitions, segmentSize, json, Retention.FOREVER);
    }

    /** Returns a definition with {@value #DEFAULT_PARTITIONS} partitions per shard and the default segment size. */
    public static StreamSpec of(String name) {
        return new StreamSpec(name, DEFAULT_PARTITIONS, DEFAULT_SEGMENT_SIZE, false);
    }

    /**
     * Returns the name of the table of the stream's events, in the library's schema on each shard: {@code events_} and the
     * stream's name if that is at most 36 lower-case letters, digits and single underscores and starts with a letter.
     * Otherwise every other character becomes an underscore, and a hash of the name keeps the table's name unique. It needs
     * no quotes in SQL.
     */
    public String tableName() {
        return Names.tableName(name);
    }

    /** Returns a copy with another number of partitions per shard. */
    public StreamSpec withPartitions(int newPartitions) {
        return new StreamSpec(name, newPartitions, segmentSize, json, retention, compaction, storage, keyTracking);
    }

    /** Returns a copy with another segment size, in events. */
    public StreamSpec withSegmentSize(long newSegmentSize) {
        return new StreamSpec(name, partitions, newSegmentSize, json, retention, compaction, storage, keyTracking);
    }

    /** Returns a copy for JSON values, which adds the view. */
    public StreamSpec asJson() {
        return new StreamSpec(name, partitions, segmentSize, true, retention, compaction, storage, keyTracking);
    }

    /** Returns a copy that keeps its events for another time. */
    public StreamSpec withRetention(Retention newRetention) {
        return new StreamSpec(name, partitions, segmentSize, json, newRetention, compaction, storage, keyTracking);
    }

    /** Returns a copy in which earlier events of a key are removed; {@code null}: they stay. */
    public StreamSpec withCompaction(@Nullable Compaction newCompaction) {
        return new StreamSpec(name, partitions, segmentSize, json, retention, newCompaction, storage, keyTracking);
    }

    /** Returns a copy with another storage; for a new stream, because the storage of an existing one cannot change. */
    public StreamSpec withStorage(Storage newStorage) {
        return new StreamSpec(name, partitions, segmentSize, json, retention, compaction, newStorage, keyTracking);
    }

    /**
     * Returns a copy that counts the events of each key, so that a publish can name the version that it expects; for a new
     * stream, because the events of an existing one were not counted.
     */
    public StreamSpec withKeyVersions() {
        return withKeyTracking(KeyTracking.VERSIONS);
    }

    /**
     * Returns a copy that counts the events of each key, and indexes them by key, so that all events of a key can be read; for
     * a new stream.
     */
    public StreamSpec withKeyIndex() {
        return withKeyTracking(KeyTracking.INDEX);
    }

    /** Returns a copy with another key tracking; for a new stream, because that of an existing one cannot change. */
    public StreamSpec withKeyTracking(KeyTracking newKeyTracking) {
        return new StreamSpec(name, partitions, segmentSize, json, retention, compaction, storage, newKeyTracking);
    }
}
