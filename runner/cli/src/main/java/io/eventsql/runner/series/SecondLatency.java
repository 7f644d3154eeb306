package io.eventsql.runner.series;

import io.eventsql.runner.measure.Histograms;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * The latencies of one second. After closing, keeps only the percentiles and a compressed histogram of some hundred
 * bytes, so that hours fit into memory. Thread-safe.
 */
final class SecondLatency {
    private @Nullable Histogram open;
    private String encoded = "";
    private long count;
    private double p50;
    private double p99;
    private double max;
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
        count = histogram.getTotalCount();
        p50 = histogram.getValueAtPercentile(50) / 1_000.0;
        p99 = histogram.getValueAtPercentile(99) / 1_000.0;
        max = histogram.getMaxValue() / 1_000.0;
        encoded = Histograms.encode(histogram);
        open = null;
    }

    synchronized @Nullable Double p50Ms() {
        return count == 0 ? null : p50;
    }

    synchronized @Nullable Double p99Ms() {
        return count == 0 ? null : p99;
    }

    synchronized @Nullable Double maxMs() {
        return count == 0 ? null : max;
    }

    /** Returns all values of the closed second; {@code null} if there are none. */
    synchronized @Nullable Histogram histogram() {
        return count == 0 ? null : Histograms.decode(encoded);
    }
}
