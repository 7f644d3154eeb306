package io.eventsql.runner.limits;

import io.eventsql.runner.measure.Statistics;
import java.util.List;

/**
 * How fast one variant was.
 *
 * @param name the variant's
 * @param eventsPerSecond the median of its rounds, events/s
 * @param roundsEventsPerSecond each round, in their order, events/s
 * @param eventsPerCall the mean number of events of a call or transaction
 */
public record MeasuredRate(
        String name, double eventsPerSecond, List<Double> roundsEventsPerSecond, double eventsPerCall) {

    /** @param intervals the variant's rounds, at least one */
    static MeasuredRate of(String name, List<MeasuredInterval> intervals) {
        List<Double> rates =
                intervals.stream().map(MeasuredInterval::eventsPerSecond).toList();
        long events = intervals.stream().mapToLong(MeasuredInterval::events).sum();
        long calls = intervals.stream().mapToLong(MeasuredInterval::calls).sum();
        return new MeasuredRate(
                name, Statistics.median(rates), rates, Statistics.ratio((double) events, (double) calls));
    }
}
