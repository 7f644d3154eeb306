package io.eventsql.runner.limits;

import io.eventsql.runner.measure.Figures;
import java.util.List;

/**
 * How fast one contender was.
 *
 * @param name the contender's
 * @param eventsPerSecond the median of its rounds, events/s
 * @param roundsEventsPerSecond each round, in their order, events/s
 * @param eventsPerCall the mean number of events of a call or transaction
 */
public record MeasuredRate(
        String name, double eventsPerSecond, List<Double> roundsEventsPerSecond, double eventsPerCall) {

    /** @param stretches the contender's rounds, at least one */
    static MeasuredRate of(String name, List<Stretch> stretches) {
        List<Double> rates = stretches.stream().map(Stretch::eventsPerSecond).toList();
        long events = stretches.stream().mapToLong(Stretch::events).sum();
        long calls = stretches.stream().mapToLong(Stretch::calls).sum();
        return new MeasuredRate(name, Figures.median(rates), rates, Figures.ratio((double) events, (double) calls));
    }
}
