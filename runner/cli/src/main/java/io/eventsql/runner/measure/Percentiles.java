package io.eventsql.runner.measure;

import org.HdrHistogram.Histogram;

/**
 * The reported statistics of a latency in milliseconds.
 *
 * @param p50 the median
 * @param p90 the 90th percentile
 * @param p99 the 99th percentile
 * @param p999 the 99.9th percentile
 * @param max the maximum
 * @param mean the mean
 */
public record Percentiles(double p50, double p90, double p99, double p999, double max, double mean) {

    /** Computes the statistics of a histogram of microseconds; all 0 if it is empty. */
    public static Percentiles ofMicros(Histogram micros) {
        return new Percentiles(
                micros.getValueAtPercentile(50) / 1_000.0,
                micros.getValueAtPercentile(90) / 1_000.0,
                micros.getValueAtPercentile(99) / 1_000.0,
                micros.getValueAtPercentile(99.9) / 1_000.0,
                micros.getMaxValue() / 1_000.0,
                Math.round(micros.getMean()) / 1_000.0);
    }
}
