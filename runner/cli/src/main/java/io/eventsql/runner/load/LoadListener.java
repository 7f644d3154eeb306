package io.eventsql.runner.load;

/**
 * Callbacks for the calls of a load. Implementations must be thread-safe and fast, because they are called on the hot
 * path. All times are monotonic nanoseconds.
 */
public interface LoadListener {

    /** Called before a call is made. Only open-loop loads report it, from one thread. */
    void called(long intendedNanos, long calledNanos);

    /** Called with the events of a call before it is made. */
    default void sent(long intendedNanos, long calledNanos, int events) {}

    /** Called for a slot that is skipped because too many events are unanswered. */
    default void missed(long intendedNanos, int events) {}

    /** Called when the events of a call are stored. */
    void acknowledged(long intendedNanos, long calledNanos, long acknowledgedNanos, int events);

    /** Called when events of a call failed; those of the same call that were stored are acknowledged. */
    void failed(long intendedNanos, long failedNanos, int events, Throwable failure);

    /** Returns the number of events acknowledged or failed so far. */
    long answeredEvents();
}
