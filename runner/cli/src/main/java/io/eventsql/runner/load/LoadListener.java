package io.eventsql.runner.load;

/** Hears what becomes of each call. Thread-safe and quick: called on the hot path. All times are monotonic nanoseconds. */
public interface LoadListener {

    /** A call is about to be made. Only open-loop loads report it, from one thread. */
    void called(long intendedNanos, long calledNanos);

    /** The events of a call that is about to be made. */
    default void sent(long intendedNanos, long calledNanos, int events) {}

    /** A slot that is left out, because too many events are unanswered. */
    default void missed(long intendedNanos, int events) {}

    /** The call's events are stored. */
    void acknowledged(long intendedNanos, long calledNanos, long acknowledgedNanos, int events);

    /** The call failed, or at least for some of its events. */
    void failed(long intendedNanos, long failedNanos, int events, Throwable failure);

    /** How many events were acknowledged or failed so far. */
    long answeredEvents();
}
