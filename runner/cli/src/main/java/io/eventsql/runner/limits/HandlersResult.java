package io.eventsql.runner.limits;

import com.fasterxml.jackson.annotation.JsonIgnore;
import io.eventsql.runner.measure.Statistics;

/**
 * How fast a slow handler goes through one partition: one event after the other, and several keys at the same time.
 *
 * @param handlerMs how long the handler takes for an event, milliseconds
 * @param keys different keys of the events
 * @param barEventsPerSecond what the parallel run is to reach, events/s
 * @param sequential the run with one event at a time
 * @param parallel the run with several keys at the same time
 * @param parallelToSequential its rate in parts of the other's
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

    /** Whether each event was handled once and in the order of its key. */
    @JsonIgnore
    public boolean passed() {
        return sequential.passed() && parallel.passed();
    }

    /**
     * One run.
     *
     * @param keyConcurrency how many keys at the same time
     * @param events how many events were published, before the first was handled
     * @param eventsPerSecond handled events, from the beginning of the first to the end of the last, events/s
     * @param eventsLost events that were not handled
     * @param eventsDuplicated events that were handled again
     * @param orderViolations events that began before an earlier one of the same key had ended, or after a later one
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
