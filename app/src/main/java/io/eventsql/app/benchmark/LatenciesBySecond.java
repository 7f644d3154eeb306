package io.eventsql.app.benchmark;

import java.util.SortedMap;
import java.util.TreeMap;
import org.HdrHistogram.Histogram;

/**
 * The latencies by second. Only the newest second has an open histogram. The others are compressed to some hundred
 * bytes. Not thread-safe.
 */
final class LatenciesBySecond {
    private static final long MICROS_PER_SECOND = 1_000_000;
    private static final int SIGNIFICANT_DIGITS = 3;

    private final SortedMap<Long, String> closed = new TreeMap<>();
    private final Histogram allClosed = new Histogram(SIGNIFICANT_DIGITS);
    private final Histogram newest = new Histogram(SIGNIFICANT_DIGITS);
    private long newestSecond;

    /**
     * Advances to the second of the given time. Closed seconds are not reopened, so a late batch counts in the newest
     * second.
     *
     * @param atMicros the time in epoch microseconds
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

    /** Records a latency in the current second, without an upper limit. */
    void record(long micros) {
        newest.recordValue(micros);
    }

    /** Returns a copy of the latencies of all seconds. */
    Histogram all() {
        Histogram all = allClosed.copy();
        all.add(newest);
        return all;
    }

    /** Returns a copy of the encoded latencies by epoch second. */
    SortedMap<Long, String> encoded() {
        SortedMap<Long, String> all = new TreeMap<>(closed);
        if (newest.getTotalCount() > 0) {
            all.put(newestSecond, HistogramSerializer.encode(newest));
        }
        return all;
    }
}
