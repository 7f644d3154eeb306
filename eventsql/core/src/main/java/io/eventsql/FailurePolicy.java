package io.eventsql;

/**
 * What happens to an event whose handler failed and that {@link RetryPolicy} does not retry. By default events are retried
 * without limit with {@link #STOP}, and {@value RetryPolicy#DEFAULT_MAX_ATTEMPTS} times with the other policies. Those are
 * applied to no event while {@link ConsumerSpec#circuitBreaker()} is open.
 */
public enum FailurePolicy {
    /** The partition stops at the event until it is resumed. No event is skipped; the state shows the error. */
    STOP,
    /**
     * The event is copied to the dead-letter stream, {@link ConsumerSpec#deadLetterStream()}, and the consumer continues
     * with the next one. Copy and offset are committed together.
     */
    DEAD_LETTER,
    /**
     * The event and all later events of its key are parked, in order, until they are redriven or dropped; events of
     * other keys are handled normally. An event without a key is dead-lettered. A partition with 100,000 parked keys stops at
     * the next event that would park one.
     */
    PARK_KEY
}
