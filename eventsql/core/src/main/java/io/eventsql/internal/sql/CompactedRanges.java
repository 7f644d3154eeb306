package io.eventsql.internal.sql;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The ranges of a partition in which compaction may have removed events: an offset without an event is no failure. Immutable. */
public final class CompactedRanges {
    public static final CompactedRanges NONE = new CompactedRanges(List.of());

    /** First offset → the offset after the last; disjoint, and adjacent ones are joined. */
    private final TreeMap<Long, Long> ranges = new TreeMap<>();

    /** @param ranges disjoint, in the order of their offsets */
    public CompactedRanges(List<OffsetRange> ranges) {
        for (OffsetRange range : ranges) {
            Map.Entry<Long, Long> last = this.ranges.lastEntry();
            boolean isAdjacent = last != null && last.getValue() == range.first();
            this.ranges.put(isAdjacent ? last.getKey() : range.first(), range.next());
        }
    }

    /** Returns whether events may have been removed at all offsets of a range. */
    public boolean contains(long first, long next) {
        Map.Entry<Long, Long> range = ranges.floorEntry(first);
        return range != null && range.getValue() >= next;
    }

    /** Returns the parts of a range in which events may have been removed. */
    public List<OffsetRange> within(long first, long next) {
        List<OffsetRange> parts = new ArrayList<>();
        for (Map.Entry<Long, Long> range : ranges.headMap(next).entrySet()) {
            if (range.getValue() > first) {
                parts.add(new OffsetRange(Math.max(first, range.getKey()), Math.min(next, range.getValue())));
            }
        }
        return parts;
    }

    /** Returns the other parts of a range. */
    public List<OffsetRange> outside(long first, long next) {
        List<OffsetRange> parts = new ArrayList<>();
        long from = first;
        for (OffsetRange compacted : within(first, next)) {
            if (compacted.first() > from) {
                parts.add(new OffsetRange(from, compacted.first()));
            }
            from = compacted.next();
        }
        if (from < next) {
            parts.add(new OffsetRange(from, next));
        }
        return parts;
    }

    @Override
    public String toString() {
        return ranges.toString();
    }
}
