package io.eventsql.runner.measure;

import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * The latencies of one second. After closing, keeps only the percentiles and a compressed histogram of some hundred
 * bytes, so that hours fit into memory. Thread-safe.
 */
final class SecondLatency {
    private @Nullable Histogram open;
    private String encoded = "";
    private @Nullable Percentiles percentiles;
    private boolean closed;

    /** Returns {@code false} if the second is closed. */
    synchronized boolean record(long micros, int events) {
        if (closed) {
            return false;
        }
        openHistogram().recordValueWithCount(Math.max(0, micros), events);
        return true;
    }

    /** Returns {@code false} if the second is closed. */
    synchronized boolean record(long[] micros, int count) {
        if (closed) {
            return false;
        }
        Histogram histogram = openHistogram();
        for (int i = 0; i < count; i++) {
            histogram.recordValue(Math.max(0, micros[i]));
        }
        return true;
    }

    private Histogram openHistogram() {
        Histogram histogram = open;
        if (histogram == null) {
            histogram = Histograms.create();
            open = histogram;
        }
        return histogram;
    }

    synchronized void close() {
        Histogram histogram = open;
        closed = true;
        if (histogram == null) {
            return;
        }
        percentiles = Percentiles.ofMicros(histogram);
        encoded = Histograms.encode(histogram);
        open = null;
    }

    /** Returns the percentiles of the closed second; {@code null} if it has no values. */
    synchronized @Nullable Percentiles percentiles() {
        return percentiles;
    }

    /** Returns all values of the closed second; {@code null} if there are none. */
    synchronized @Nullable Histogram histogram() {
        return percentiles == null ? null : Histograms.decode(encoded);
    }
}
