package io.eventsql;

import java.time.Duration;

/**
 * Is told what happens to the consumers of this process, for metrics and alerts; given to {@link
 * EventSql.Builder#listener}. Called on the library's and the handlers' threads, concurrently: methods must be
 * thread-safe and return at once. What they throw is logged and changes nothing.
 */
public interface ConsumerListener {
    /** Why a member no longer handles a partition. */
    enum Reason {
        /** Given back in order: the member was closed, another one gets its share, or the partition was paused. */
        RELEASED,
        /** Lost: the lease expired and another member took it, or it was moved by {@link ConsumerControl}. */
        LOST,
        /** Stopped by its failure policy or an offset out of range. */
        STOPPED
    }

    /** The member of this process handles the partition from now on, beginning with {@code nextOffset}. */
    default void partitionAssigned(ConsumerPartition partition, long nextOffset) {}

    /** The member no longer handles the partition. */
    default void partitionRevoked(ConsumerPartition partition, Reason reason) {}

    /**
     * Events were handled.
     *
     * @param events how many
     * @param nanos how long the handler took, in nanoseconds
     */
    default void handled(ConsumerPartition partition, int events, long nanos) {}

    /**
     * The handler failed.
     *
     * @param event the event, or the first of the batch
     * @param attempt how often it has failed now, from 1
     * @param willRetry whether it is handled again; otherwise the failure policy applies
     */
    default void handlerFailed(StoredEvent event, String consumer, int attempt, Throwable error, boolean willRetry) {}

    /** A handler runs longer than {@link ConsumerSpec#handlerTimeout()}; its partition will move. */
    default void handlerTimedOut(ConsumerPartition partition, Duration runningFor) {}

    /** The event was copied to the dead-letter stream. */
    default void deadLettered(StoredEvent event, String consumer, int attempts, Throwable error) {}

    /** The event and with it its key were set aside. */
    default void keyParked(StoredEvent event, String consumer, int attempts, Throwable error) {}

    /** The partition was stopped and waits to be resumed. */
    default void partitionStopped(ConsumerPartition partition, long nextOffset, String error) {}

    /**
     * How far a partition of this process is behind; told about once each {@link Settings#pollInterval()}.
     *
     * @param lag how many events are stored and not handled yet
     */
    default void lag(ConsumerPartition partition, long lag) {}
}
