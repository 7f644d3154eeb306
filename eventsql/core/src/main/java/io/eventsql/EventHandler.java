package io.eventsql;

/** Handles one event at a time. */
@FunctionalInterface
public interface EventHandler {
    /**
     * Handles an event: called in order within a partition, concurrently for different partitions, at least once for
     * each event. No database transaction of the library is open meanwhile.
     *
     * @throws Exception to have the event handled again as {@link ConsumerSpec#retry()} says; later events of the
     *     partition wait. When it allows no further attempt, {@link ConsumerSpec#failurePolicy()} applies.
     */
    void handle(StoredEvent event) throws Exception;
}
