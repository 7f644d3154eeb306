package io.eventsql.kafka.connect;

import io.eventsql.reader.LogEvent;
import io.eventsql.reader.ReadPosition;
import io.eventsql.reader.StreamPartition;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.errors.ConnectException;
import org.jspecify.annotations.Nullable;

/**
 * Source partitions and source offsets, as Connect stores them. A source partition has a single entry, because Connect
 * compares it as serialized, and the order of several entries is not defined:
 *
 * <pre>{"partition": "orders/0/3"} → {"offset": 41, "incarnation": "…", "published_at": "2026-11-24T09:30:00.123456Z"}</pre>
 *
 * The offset is that of the last event written to Kafka. The other entries recognise a database that has gone back in time.
 */
final class SourcePartitions {
    private static final String PARTITION = "partition";
    private static final String OFFSET = "offset";
    private static final String INCARNATION = "incarnation";
    private static final String PUBLISHED_AT = "published_at";
    private static final char SEPARATOR = '/';
    private static final int FIELDS = 3;

    private SourcePartitions() {}

    /** Returns the name of a partition: stream, shard and partition. */
    static String name(StreamPartition partition) {
        return partition.stream() + SEPARATOR + partition.shard() + SEPARATOR + partition.partition();
    }

    /** @throws ConnectException if it is no name of a partition */
    static StreamPartition partition(String name) {
        List<String> fields = List.of(name.split("/", -1));
        try {
            if (fields.size() == FIELDS && !fields.get(0).isEmpty()) {
                StreamPartition partition = new StreamPartition(
                        fields.get(0), Integer.parseInt(fields.get(1)), Integer.parseInt(fields.get(2)));
                if (partition.shard() >= 0 && partition.partition() >= 0) {
                    return partition;
                }
            }
        } catch (NumberFormatException e) {
            throw unknown(name, e);
        }
        throw unknown(name, null);
    }

    private static ConnectException unknown(String name, @Nullable Exception cause) {
        return new ConnectException(
                "partition must be stream/shard/partition, such as orders/0/3, but is " + name, cause);
    }

    static Map<String, String> toMap(StreamPartition partition) {
        return Map.of(PARTITION, name(partition));
    }

    /** Returns the source offset after an event. */
    static Map<String, Object> offsetAfter(LogEvent event, @Nullable String incarnation) {
        Map<String, Object> offset = new HashMap<>();
        offset.put(OFFSET, event.offset());
        if (incarnation != null) {
            offset.put(INCARNATION, incarnation);
            offset.put(PUBLISHED_AT, event.publishedAt().toString());
        }
        return offset;
    }

    /**
     * Returns where to continue after a source offset. One with an offset alone, set by an operator, is checked by the first
     * read.
     *
     * @throws ConnectException if an entry is missing or has a wrong type; the message names it
     */
    static ReadPosition position(Map<String, ?> sourceOffset) {
        if (!(sourceOffset.get(OFFSET) instanceof Number number) || number.longValue() < -1) {
            throw new ConnectException("offset must be the number of the last event to be skipped, -1 or more, but is "
                    + sourceOffset.get(OFFSET));
        }
        long last = number.longValue();
        Object incarnation = sourceOffset.get(INCARNATION);
        Object publishedAt = sourceOffset.get(PUBLISHED_AT);
        if (incarnation == null || last < 0) {
            return ReadPosition.at(last + 1);
        }
        try {
            return new ReadPosition(
                    last + 1,
                    incarnation.toString(),
                    last,
                    publishedAt == null ? null : Instant.parse(publishedAt.toString()));
        } catch (DateTimeException e) {
            throw new ConnectException(
                    "published_at must be a time such as 2026-11-24T09:30:00Z, but is " + publishedAt, e);
        }
    }

    /**
     * Checks offsets that an operator sets.
     *
     * @throws ConnectException if a source partition or a source offset is invalid
     */
    static void requireValid(Map<Map<String, ?>, Map<String, ?>> offsets) {
        offsets.forEach((sourcePartition, sourceOffset) -> {
            Object name = sourcePartition.get(PARTITION);
            if (name == null || sourcePartition.size() != 1) {
                throw new ConnectException(
                        "A source partition has the entry partition alone, such as {\"partition\": \"orders/0/3\"}, but is "
                                + sourcePartition);
            }
            partition(name.toString());
            if (sourceOffset != null) { // null: the offset is deleted
                position(sourceOffset);
            }
        });
    }
}
