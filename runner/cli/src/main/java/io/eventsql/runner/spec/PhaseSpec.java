package io.eventsql.runner.spec;

import com.fasterxml.jackson.annotation.JsonInclude;
import org.jspecify.annotations.Nullable;

/**
 * A stretch of load. It has either a rate (open loop) or callers (closed loop).
 *
 * @param name shown in the results
 * @param measured whether it counts; {@code false}: a warm-up
 * @param rate when calls are made, whether or not earlier ones were answered
 * @param inFlight how many unanswered events there may be; slots beyond are missed. {@code null}: any number
 * @param callers how many call again and again, as fast as it goes
 * @param async whether those callers do not wait for answers
 * @param eventsPerCall events of one call
 * @param seconds how long
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

    /** The same under another name. */
    public PhaseSpec named(String other) {
        return new PhaseSpec(other, measured, rate, inFlight, callers, async, eventsPerCall, seconds);
    }
}
