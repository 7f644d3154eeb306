package io.eventsql.internal.wake;

/** Callbacks for signals of a shard; must return immediately. */
public interface WakeUpTarget {
    /** Called if a partition of a stream may have new events. */
    default void wake(int streamId, int partition) {}

    /** Called if the members or the state of a consumer may have changed. */
    default void consumerChanged(int consumerId) {}

    /** Called if anything may have changed. */
    void wakeAll();
}
