package io.eventsql;

import java.util.Map;

/**
 * Callbacks for the events that this process publishes through its {@link EventPublisher}, for metrics; registered with
 * {@link EventSqlBuilder#publishListener}. They are called one after the other on a thread of their own. Whatever a method
 * throws is logged and has no other effect. If the listeners are so slow that more than 10,000 callbacks wait, further ones
 * are dropped; their number is logged, and returned by {@link EventSql#droppedPublishCallbacks}.
 *
 * <p>Callbacks are per batch, not per event, which keeps their overhead negligible. Events that the relay moves out of an
 * outbox are reported only if a shard loses them: see {@link #historyLost} and {@link Outbox#backlogs()}.
 */
public interface PublishListener {
    /**
     * A batch: the calls committed in one transaction.
     *
     * @param shard the shard's number
     * @param calls the number of calls, or per-shard parts of calls
     * @param events the number of events
     * @param bytes the total size of keys, values and headers
     * @param nanos the duration of the append in nanoseconds, from sending the batch to the database's confirmation of
     *     the commit; excludes the time in the buffer
     * @param eventsByStream the number of events by stream name
     */
    record Appended(int shard, int calls, int events, long bytes, long nanos, Map<String, Integer> eventsByStream) {}

    /** Called after a batch was committed. */
    default void appended(Appended batch) {}

    /**
     * Called after an attempt to append a batch failed. Its events are not lost: the library retries the batch, or splits
     * it if the database rejected an event.
     *
     * @param shard the shard's number
     */
    default void appendFailed(int shard, Throwable error) {}

    /**
     * Called after a call, or its part for one shard, failed, also with a {@link VersionConflictException}, which is no fault. Input
     * rejected by the call itself is not reported.
     *
     * @param events the number of its events
     * @param error the exception that the caller receives
     */
    default void callFailed(String stream, int events, EventSqlException error) {}

    /**
     * Called when acknowledged events are no longer stored, because a shard's database went back in time: an asynchronous
     * failover lost the end of its log, or a backup was restored. Called once for each partition in which this instance had
     * published them, and once for each outbox of another database from which this instance had moved them there.
     *
     * @param shard the shard's number
     * @param fromOffset the first offset that may be lost; this instance has published nothing below that is lost
     * @param toOffset the offset after the last one that is lost; events published since may have these offsets again
     */
    default void historyLost(int shard, String stream, int partition, long fromOffset, long toOffset) {}
}
