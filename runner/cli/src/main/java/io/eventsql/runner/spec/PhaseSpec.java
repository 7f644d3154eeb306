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
 * @param heldSnapshot whether another transaction holds a snapshot from the start of the phase to its end; {@code null}
 *     if not
 * @param fullSeconds the duration before {@code schedule_factor}; {@code null} if it was not shortened
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
        int seconds,
        @Nullable Boolean heldSnapshot,
        @Nullable Integer fullSeconds) {

    /** Creates a phase of full length without a held snapshot. */
    public PhaseSpec(
            String name,
            boolean measured,
            @Nullable PhaseRate rate,
            @Nullable Long inFlight,
            @Nullable Integer callers,
            boolean async,
            int eventsPerCall,
            int seconds) {
        this(name, measured, rate, inFlight, callers, async, eventsPerCall, seconds, null, null);
    }

    /**
     * Creates a measured phase with callers, whose duration is given elsewhere.
     *
     * @param name the name shown in the results
     */
    public static PhaseSpec ofCallers(String name, int callers, boolean async, int eventsPerCall) {
        return new PhaseSpec(name, true, null, null, callers, async, eventsPerCall, 0);
    }

    /** Creates a measured phase with a rate, whose duration is given elsewhere. */
    public static PhaseSpec ofRate(String name, long eventsPerSecond, int eventsPerCall) {
        return new PhaseSpec(name, true, PhaseRate.of(eventsPerSecond), null, null, false, eventsPerCall, 0);
    }

    /** Returns a copy that is not measured. */
    public PhaseSpec asWarmup() {
        return new PhaseSpec(
                name, false, rate, inFlight, callers, async, eventsPerCall, seconds, heldSnapshot, fullSeconds);
    }

    /** Returns a copy with another name. */
    public PhaseSpec withName(String other) {
        return new PhaseSpec(
                other, measured, rate, inFlight, callers, async, eventsPerCall, seconds, heldSnapshot, fullSeconds);
    }

    /** Returns whether a snapshot is held during the phase. */
    public boolean holdsSnapshot() {
        return Boolean.TRUE.equals(heldSnapshot);
    }
}
