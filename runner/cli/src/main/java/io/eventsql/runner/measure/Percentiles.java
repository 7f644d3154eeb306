package io.eventsql.runner.measure;

import org.HdrHistogram.Histogram;

/**
 * What is told of a latency, in milliseconds.
 *
 * @param p50 half of the events were this fast or faster
 * @param p90 nine in ten
 * @param p99 99 in a hundred
 * @param p999 999 in a thousand
 * @param max the slowest
 * @param mean of all
 */
public record Percentiles(double p50, double p90, double p99, double p999, double max, double mean) {

    /** Of a histogram of microseconds; all zero where it is empty. */
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
