package io.eventsql.app.benchmark;

import java.util.SortedMap;
import java.util.TreeMap;
import org.HdrHistogram.Histogram;

/**
 * The latencies of each second, of which only those of the newest one are kept open; the others take some hundred bytes
 * each. Not thread-safe.
 */
final class LatenciesBySecond {
    private static final long MICROS_PER_SECOND = 1_000_000;
    private static final int SIGNIFICANT_DIGITS = 3;

    private final SortedMap<Long, String> closed = new TreeMap<>();
    private final Histogram allClosed = new Histogram(SIGNIFICANT_DIGITS);
    private final Histogram newest = new Histogram(SIGNIFICANT_DIGITS);
    private long newestSecond;

    /**
     * Turns to the second of that time. A second that is over does not open again: a batch that came to its turn late
     * counts in the newest one.
     *
     * @param atMicros microseconds since 1970
     */
    void advanceTo(long atMicros) {
        long second = Math.floorDiv(atMicros, MICROS_PER_SECOND);
        if (second > newestSecond) {
            if (newest.getTotalCount() > 0) {
                closed.put(newestSecond, HistogramSerializer.encode(newest));
                allClosed.add(newest);
                newest.reset();
            }
            newestSecond = second;
        }
    }

    /** Adds a latency to the second turned to; however long it is, it is recorded as it was. */
    void record(long micros) {
        newest.recordValue(micros);
    }

    /** The latencies of all seconds; a copy. */
    Histogram all() {
        Histogram all = allClosed.copy();
        all.add(newest);
        return all;
    }

    /** The latencies of each second since 1970 that has any, encoded; a copy. */
    SortedMap<Long, String> encoded() {
        SortedMap<Long, String> all = new TreeMap<>(closed);
        if (newest.getTotalCount() > 0) {
            all.put(newestSecond, HistogramSerializer.encode(newest));
        }
        return all;
    }
}
