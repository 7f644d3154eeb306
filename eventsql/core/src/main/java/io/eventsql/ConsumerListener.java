package io.eventsql;

import java.time.Duration;

/**
 * Callbacks for the consumers of this process, for metrics and alerts; registered with {@link
 * EventSqlBuilder#listener}. They are called concurrently on threads of the library and on handler threads: methods must
 * be thread-safe and return quickly. An exception or {@link Error} is logged and has no other effect, and an interrupt that a
 * callback leaves is cleared.
 */
public interface ConsumerListener {
    /** Why a member no longer handles a partition. */
    enum Reason {
        /** Released: the member was closed, the partition was assigned to another member, or it was paused. */
        RELEASED,
        /** Lost: the lease expired and another member took over, or {@link ConsumerControl} moved the partition. */
        LOST,
        /** Stopped by the failure policy, by an offset out of range, or by missing events. */
        STOPPED,
        /**
         * The shard's database was restarted, failed over or was restored: the member takes the partition anew, from the
         * offset that is stored now. If nothing that the member had handled was lost, it commits that before; otherwise
         * {@link ConsumerListener#historyLost} reports what was lost.
         */
        HISTORY_CHANGED
    }

    /** Called when a member of this process starts to handle a partition at {@code nextOffset}. */
    default void partitionAssigned(ConsumerPartition partition, long nextOffset) {}

    /** Called when the member no longer handles the partition. */
    default void partitionRevoked(ConsumerPartition partition, Reason reason) {}

    /**
     * Called after events were handled.
     *
     * @param events the number of events
     * @param nanos the duration of the handler call in nanoseconds
     */
    default void handled(ConsumerPartition partition, int events, long nanos) {}

    /**
     * Called after the handler failed.
     *
     * @param event the failed event, or the first of the batch
     * @param attempt the number of failed attempts so far, from 1
     * @param willRetry whether the event will be handled again; otherwise the failure policy applies
     */
    default void handlerFailed(StoredEvent event, String consumer, int attempt, Throwable error, boolean willRetry) {}

    /** Called when a handler exceeds {@link ConsumerSpec#handlerTimeout()}; the member releases its partition. */
    default void handlerTimedOut(ConsumerPartition partition, Duration runningFor) {}

    /** Called after the event was copied to the dead-letter stream. */
    default void deadLettered(StoredEvent event, String consumer, int attempts, Throwable error) {}

    /** Called after the event and its key were parked. */
    default void keyParked(StoredEvent event, String consumer, int attempts, Throwable error) {}

    /**
     * Called when the circuit breaker of a partition opens ({@link ConsumerSpec#circuitBreaker()}), and again for each
     * further pause, when the event that was handled after the last one has failed, too.
     *
     * @param failures the number of failures in a row
     * @param delay the duration of the pause
     */
    default void circuitBreakerOpened(ConsumerPartition partition, int failures, Duration delay) {}

    /**
     * Called when a call of the handler has succeeded and so closed the partition's circuit breaker; not if the partition is
     * revoked before.
     */
    default void circuitBreakerClosed(ConsumerPartition partition) {}

    /**
     * Called when a partition has waited for 10 seconds because its handling is {@link ConsumerSpec#maxEventsAhead()} events
     * ahead of the committed offset: the event at that offset is still being handled, or the offset cannot be committed.
     *
     * @param committedOffset the offset that the partition waits for
     */
    default void handlingBlocked(ConsumerPartition partition, long committedOffset) {}

    /** Called when a partition for which {@link #handlingBlocked} was called continues; not if it is revoked before. */
    default void handlingContinued(ConsumerPartition partition) {}

    /** Called when the partition was stopped; it stays stopped until {@link ConsumerControl#resume}. */
    default void partitionStopped(ConsumerPartition partition, long nextOffset, String error) {}

    /**
     * Called after events that are missing from the log were skipped ({@link MissingEventPolicy#SKIP}).
     *
     * @param firstOffset the offset of the first missing event
     * @param nextOffset the offset after the last one
     */
    default void eventsMissing(ConsumerPartition partition, long firstOffset, long nextOffset) {}

    /**
     * Called after erased events were passed without a call of the handler ({@link EventSql#erase(ErasureSpec)}).
     *
     * @param events the number of events
     */
    default void eventsErased(ConsumerPartition partition, int events) {}

    /**
     * Called when a shard's database went back in time, by an asynchronous failover or a restored backup, and has lost
     * events or offsets that this member had fetched or committed. Called once for each partition that the member owned;
     * the member continues at the offset that is stored now, so events that replaced the lost ones are handled.
     *
     * @param fromOffset the first offset that may be lost: the one at which the member continues
     * @param toOffset the offset after the last one that is lost: what the member had committed or fetched
     */
    default void historyLost(ConsumerPartition partition, long fromOffset, long toOffset) {}

    /**
     * Called once per {@link Settings#pollInterval()} for each partition assigned to this process.
     *
     * @param lag the number of stored events not yet handled
     */
    default void lag(ConsumerPartition partition, long lag) {}
}
