package io.eventsql;

/**
 * What a stream is made of. Streams are created with {@link EventSql#createStream}; none of these can be changed later.
 *
 * @param name lower-case letters, digits and single underscores, starting with a letter, at most {@value
 *     #NAME_LENGTH_MAX} characters ({@code order_events}); it becomes part of table names
 * @param partitions partitions on each shard, 1 to {@value #PARTITIONS_MAX}: how many members of one consumer can share
 *     the work of one shard
 * @param segmentSize events in one segment (one table) of a partition, {@value #SEGMENT_SIZE_MIN} to {@value
 *     #SEGMENT_SIZE_MAX}: old events are removed a whole segment at a time
 * @param json whether the values are JSON in UTF-8: the stream then has a view {@code events_<name>__json} with the value
 *     parsed ({@code NULL} where it is not JSON after all: publishing does not check it)
 */
public record StreamSpec(String name, int partitions, long segmentSize, boolean json) {
    public static final int NAME_LENGTH_MAX = 36;
    public static final int PARTITIONS_MAX = 1_000;
    public static final int DEFAULT_PARTITIONS = 10;
    public static final long SEGMENT_SIZE_MIN = 100;
    public static final long SEGMENT_SIZE_MAX = 1_000_000_000;
    public static final long DEFAULT_SEGMENT_SIZE = 1_000_000;

    /**
     * Checks every field.
     *
     * @throws InvalidInputException if a field is out of its range; names the field and the limit
     */
    public StreamSpec {
        Names.requireName("stream.name", name, NAME_LENGTH_MAX);
        InvalidInputException.requireRange("stream.partitions", partitions, 1, PARTITIONS_MAX);
        InvalidInputException.requireRange("stream.segmentSize", segmentSize, SEGMENT_SIZE_MIN, SEGMENT_SIZE_MAX);
    }

    /** A stream with {@value #DEFAULT_PARTITIONS} partitions a shard and the default segment size. */
    public static StreamSpec of(String name) {
        return new StreamSpec(name, DEFAULT_PARTITIONS, DEFAULT_SEGMENT_SIZE, false);
    }

    /** The same with another number of partitions on each shard. */
    public StreamSpec withPartitions(int newPartitions) {
        return new StreamSpec(name, newPartitions, segmentSize, json);
    }

    /** The same with another segment size, in events. */
    public StreamSpec withSegmentSize(long newSegmentSize) {
        return new StreamSpec(name, partitions, newSegmentSize, json);
    }

    /** The same for values that are JSON: adds the view. */
    public StreamSpec asJson() {
        return new StreamSpec(name, partitions, segmentSize, true);
    }
}
