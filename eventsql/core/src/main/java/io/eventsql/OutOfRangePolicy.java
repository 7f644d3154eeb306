package io.eventsql;

/** Where a consumer goes on whose next event is no longer in the log, because retention overtook it. */
public enum OutOfRangePolicy {
    /** The partition stops, visibly, until it is moved by {@link ConsumerControl#seek}. */
    FAIL,
    /** At the first event that still exists. */
    EARLIEST,
    /** Behind the last event. */
    LATEST
}
