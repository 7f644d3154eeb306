package io.eventsql.internal.consume;

import java.util.Arrays;

/** Disjoint ranges of offsets; adjacent ones are merged. Not thread-safe. */
final class OffsetRanges {
    private static final int CAPACITY_FIRST = 8;

    /** Of each range the first offset, and the offset after the last; in their order. */
    private long[] firsts = {};

    private long[] nexts = {};
    private int size;

    boolean isEmpty() {
        return size == 0;
    }

    int size() {
        return size;
    }

    /** Adds the offsets from {@code first} up to but not {@code next}. */
    void add(long first, long next) {
        int from = firstEndingAtOrAfter(first); // from here on, ranges overlap or touch the new one
        int to = from;
        long start = first;
        long end = next;
        while (to < size && firsts[to] <= next) {
            start = Math.min(start, firsts[to]);
            end = Math.max(end, nexts[to]);
            to++;
        }
        if (to == from) {
            insertAt(from);
        } else {
            remove(from + 1, to);
        }
        firsts[from] = start;
        nexts[from] = end;
    }

    private void insertAt(int index) {
        if (size == firsts.length) {
            int capacity = Math.max(CAPACITY_FIRST, size * 2);
            firsts = Arrays.copyOf(firsts, capacity);
            nexts = Arrays.copyOf(nexts, capacity);
        }
        System.arraycopy(firsts, index, firsts, index + 1, size - index);
        System.arraycopy(nexts, index, nexts, index + 1, size - index);
        size++;
    }

    /** Removes the ranges from one index up to but not another. */
    private void remove(int from, int to) {
        System.arraycopy(firsts, to, firsts, from, size - to);
        System.arraycopy(nexts, to, nexts, from, size - to);
        size -= to - from;
    }

    /** Returns the index of the first range that ends at the offset or after it; the number of ranges if none does. */
    private int firstEndingAtOrAfter(long offset) {
        if (size == 0 || nexts[size - 1] < offset) {
            return size; // the usual case: offsets rise
        }
        int index = Arrays.binarySearch(nexts, 0, size, offset);
        return index >= 0 ? index : -index - 1;
    }

    /** Removes all offsets below {@code offset}. */
    void removeBelow(long offset) {
        int from = firstEndingAtOrAfter(offset);
        if (from < size && nexts[from] == offset) {
            from++;
        }
        remove(0, from);
        if (size > 0) {
            firsts[0] = Math.max(firsts[0], offset);
        }
    }

    /** Returns the end of the range that contains the offset; the offset itself if none does. */
    long endOfRangeAt(long offset) {
        int index = firstEndingAtOrAfter(offset + 1);
        return index < size && firsts[index] <= offset ? nexts[index] : offset;
    }

    /** Returns how many offsets from {@code first} up to but not {@code next} are in the ranges. */
    long count(long first, long next) {
        long count = 0;
        for (int i = firstEndingAtOrAfter(first); i < size && firsts[i] < next; i++) {
            count += Math.max(0, Math.min(next, nexts[i]) - Math.max(first, firsts[i]));
        }
        return count;
    }
}
