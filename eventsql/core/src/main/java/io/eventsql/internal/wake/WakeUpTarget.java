package io.eventsql.internal.wake;

/** Receives the signals that there may be new events on a shard. Its methods must return at once. */
public interface WakeUpTarget {
    /** There may be new events in this partition of this stream. */
    default void wake(int streamId, int partition) {}

    /** The members or the state of this consumer have changed. */
    default void consumerChanged(int consumerId) {}

    /** There may be new events in any partition. */
    void wakeAll();
}
