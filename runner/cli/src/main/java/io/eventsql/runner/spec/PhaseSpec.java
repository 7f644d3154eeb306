package io.eventsql.runner.spec;

import com.fasterxml.jackson.annotation.JsonInclude;
import org.jspecify.annotations.Nullable;

/**
 * A phase of load, with either a rate (open loop) or callers (closed loop).
 *
 * @param name the name shown in the results
 * @param measured {@code false} for a warm-up
 * @param rate the rate of calls, independent of earlier answers
 * @param inFlight the maximum number of unanswered events, beyond which slots are missed; {@code null} for no limit
 * @param callers the number of callers that call in a loop as fast as possible
 * @param async whether callers continue without waiting for answers
 * @param eventsPerCall the events per call
 * @param seconds the duration
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public record PhaseSpec(
        String name,
        boolean measured,
        @Nullable PhaseRate rate,
        @Nullable Long inFlight,
        @Nullable Integer callers,
        boolean async,
        int eventsPerCall,
        int seconds) {

    /** Returns a copy with another name. */
    public PhaseSpec withName(String other) {
        return new PhaseSpec(other, measured, rate, inFlight, callers, async, eventsPerCall, seconds);
    }
}
