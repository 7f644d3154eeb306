package io.eventsql.internal.consume;

import java.util.Map;
import java.util.TreeMap;

/** Disjoint ranges of offsets; adjacent ones are merged. Not thread-safe. */
final class OffsetRanges {
    /** First offset → the offset after the last. */
    private final TreeMap<Long, Long> ranges = new TreeMap<>();

    boolean isEmpty() {
        return ranges.isEmpty();
    }

    int size() {
        return ranges.size();
    }

    /** Adds the offsets from {@code first} up to but not {@code next}. */
    void add(long first, long next) {
        long start = first;
        long end = next;
        Map.Entry<Long, Long> before = ranges.floorEntry(end);
        while (before != null && before.getValue() >= start) { // overlaps or touches the new range
            start = Math.min(start, before.getKey());
            end = Math.max(end, before.getValue());
            ranges.remove(before.getKey());
            before = ranges.floorEntry(end);
        }
        ranges.put(start, end);
    }

    /** Removes all offsets below {@code offset}. */
    void removeBelow(long offset) {
        while (!ranges.isEmpty() && ranges.firstKey() < offset) {
            Map.Entry<Long, Long> first = ranges.pollFirstEntry();
            if (first.getValue() > offset) {
                ranges.put(offset, first.getValue());
            }
        }
    }

    /** Returns the end of the range that contains the offset; the offset itself if none does. */
    long endOfRangeAt(long offset) {
        Map.Entry<Long, Long> range = ranges.floorEntry(offset);
        return range == null || range.getValue() <= offset ? offset : range.getValue();
    }

    /** Returns how many offsets from {@code first} up to but not {@code next} are in the ranges. */
    long count(long first, long next) {
        long count = 0;
        for (Map.Entry<Long, Long> range : ranges.headMap(next, false).entrySet()) {
            count += Math.max(0, Math.min(next, range.getValue()) - Math.max(first, range.getKey()));
        }
        return count;
    }
}
