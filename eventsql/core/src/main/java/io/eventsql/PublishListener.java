package io.eventsql;

import java.util.Map;

/**
 * Is told what becomes of the events that this process publishes through its {@link EventPublisher}, for metrics; given
 * to {@link EventSql.Builder#publishListener}. Called on the library's appending threads and on callers' threads,
 * concurrently: methods must be thread-safe and return at once. What they throw is logged and changes nothing.
 *
 * <p>It is told of batches, not of each event, so that it costs next to nothing. What the relay takes out of an outbox is
 * not told: see {@link Outbox#backlogs()}.
 */
public interface PublishListener {
    /**
     * Calls that were committed in one transaction.
     *
     * @param shard the shard's number
     * @param calls how many calls, or parts of calls, it united
     * @param events how many events
     * @param bytes the sizes of their keys, values and headers together
     * @param nanos how long the database took, in nanoseconds, the commit included and waiting in the buffer not
     * @param eventsByStream {@code events} by the streams' names
     */
    record Appended(int shard, int calls, int events, long bytes, long nanos, Map<String, Integer> eventsByStream) {}

    /** A batch was committed, and its callers have been told. */
    default void appended(Appended batch) {}

    /**
     * An attempt to append a batch failed. Its events are not lost: it is repeated, or sent in parts where the database
     * refused some of it.
     *
     * @param shard the shard's number
     */
    default void appendFailed(int shard, Throwable error) {}

    /**
     * A call failed, or the part of one that goes to one shard. Input refused by the call itself is not told.
     *
     * @param events how many events it had
     * @param error what the caller gets
     */
    default void callFailed(String stream, int events, EventSqlException error) {}
}
