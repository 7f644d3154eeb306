package io.eventsql.reader;

import java.util.Map;
import java.util.TreeMap;

/** The offsets of a partition at which compaction may have removed events. Not thread-safe. */
final class CompactedRanges {
    /** First offset → the offset after the last. Adjacent ranges are joined. */
    private final TreeMap<Long, Long> ranges = new TreeMap<>();

    /** Adds a range above those added before. */
    void add(long first, long next) {
        Map.Entry<Long, Long> last = ranges.lastEntry();
        boolean isAdjacent = last != null && last.getValue() == first;
        ranges.put(isAdjacent ? last.getKey() : Long.valueOf(first), next);
    }

    /** Returns whether events may have been removed at all offsets of a range. */
    boolean contains(long first, long next) {
        Map.Entry<Long, Long> range = ranges.floorEntry(first);
        return range != null && range.getValue() >= next;
    }
}
