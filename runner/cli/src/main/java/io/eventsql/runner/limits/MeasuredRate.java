package io.eventsql.runner.limits;

import io.eventsql.runner.measure.RatioInterval;
import io.eventsql.runner.measure.Statistics;
import java.util.List;

/**
 * The measured rate of one variant.
 *
 * @param name the name of the variant
 * @param eventsPerSecond the median of the rounds, in events/s
 * @param roundsEventsPerSecond the rate of each round, in events/s
 * @param eventsPerCall the mean number of events per call or transaction
 */
public record MeasuredRate(
        String name, double eventsPerSecond, List<Double> roundsEventsPerSecond, double eventsPerCall) {

    /** @param intervals the rounds of the variant, at least one */
    static MeasuredRate of(String name, List<MeasuredInterval> intervals) {
        List<Double> rates =
                intervals.stream().map(MeasuredInterval::eventsPerSecond).toList();
        long events = intervals.stream().mapToLong(MeasuredInterval::events).sum();
        long calls = intervals.stream().mapToLong(MeasuredInterval::calls).sum();
        return new MeasuredRate(
                name, Statistics.median(rates), rates, Statistics.ratio((double) events, (double) calls));
    }

    /** Returns this rate divided by another one of the same rounds. */
    RatioInterval ratioTo(MeasuredRate other) {
        return RatioInterval.of(other.roundsEventsPerSecond, roundsEventsPerSecond);
    }
}
