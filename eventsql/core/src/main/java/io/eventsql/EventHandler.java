package io.eventsql;

/** Handles one event at a time. */
@FunctionalInterface
public interface EventHandler {
    /**
     * Handles an event. Called at least once for each event, in order within a partition and concurrently for different
     * partitions. The library keeps no database transaction open during the call.
     *
     * @throws Exception to retry the event according to {@link ConsumerSpec#retry()}; later events of the partition
     *     wait. When it allows no further attempt, {@link ConsumerSpec#failurePolicy()} applies.
     */
    void handle(StoredEvent event) throws Exception;
}
