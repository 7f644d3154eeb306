package io.eventsql.runner.limits;

import com.fasterxml.jackson.annotation.JsonIgnore;
import io.eventsql.runner.measure.Statistics;

/**
 * The result of the handlers benchmark: the rate of a slow handler on one partition, sequentially and by key in
 * parallel.
 *
 * @param handlerMs the duration of the handler per event, in milliseconds
 * @param keys the number of distinct keys
 * @param barEventsPerSecond the target rate of the parallel run, in events/s
 * @param sequential the run that handles one event at a time
 * @param parallel the run that handles several keys in parallel
 * @param parallelToSequential the parallel rate divided by the sequential rate
 */
public record HandlersResult(
        long handlerMs,
        int keys,
        long barEventsPerSecond,
        HandlerRun sequential,
        HandlerRun parallel,
        double parallelToSequential) {

    static HandlersResult of(
            long handlerMs, int keys, long barEventsPerSecond, HandlerRun sequential, HandlerRun parallel) {
        return new HandlersResult(
                handlerMs,
                keys,
                barEventsPerSecond,
                sequential,
                parallel,
                Statistics.ratio(parallel.eventsPerSecond, sequential.eventsPerSecond));
    }

    /** Returns whether each event was handled exactly once and in order per key. */
    @JsonIgnore
    public boolean passed() {
        return sequential.passed() && parallel.passed();
    }

    /**
     * The result of one run.
     *
     * @param keyConcurrency the number of keys handled in parallel
     * @param events the events published before the first was handled
     * @param eventsPerSecond the rate from the start of the first to the end of the last event, in events/s
     * @param eventsLost the events that were not handled
     * @param eventsDuplicated the events that were handled more than once
     * @param orderViolations the events that started before an earlier event of the same key had finished, or after a
     *     later one
     */
    public record HandlerRun(
            int keyConcurrency,
            int events,
            double eventsPerSecond,
            long eventsLost,
            long eventsDuplicated,
            long orderViolations) {

        @JsonIgnore
        public boolean passed() {
            return eventsLost == 0 && eventsDuplicated == 0 && orderViolations == 0;
        }
    }
}
