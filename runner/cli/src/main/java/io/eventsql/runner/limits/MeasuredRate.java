package io.eventsql.runner.limits;

import io.eventsql.runner.measure.Statistics;
import io.eventsql.runner.result.Figure;
import io.eventsql.runner.result.PartRecorder;
import java.util.List;

/**
 * The measured rate of one variant.
 *
 * @param name the name of the variant
 * @param perSecond the rates of the rounds, in events/s
 * @param eventsPerCall the mean number of events per call or transaction
 */
record MeasuredRate(String name, Figure perSecond, double eventsPerCall) {

    /** @param intervals the rounds of the variant, at least one */
    static MeasuredRate of(String name, List<MeasuredInterval> intervals) {
        List<Double> rates =
                intervals.stream().map(MeasuredInterval::eventsPerSecond).toList();
        long events = intervals.stream().mapToLong(MeasuredInterval::events).sum();
        long calls = intervals.stream().mapToLong(MeasuredInterval::calls).sum();
        return new MeasuredRate(
                name, Figure.ofRounds(rates, "events/s"), Statistics.ratio((double) events, (double) calls));
    }

    /** Adds the rate as a row of a table. */
    void addTo(PartRecorder part, String table) {
        part.add(table, name, "events_per_second", perSecond)
                .add(table, name, "events_per_call", Figure.of(eventsPerCall));
    }
}
