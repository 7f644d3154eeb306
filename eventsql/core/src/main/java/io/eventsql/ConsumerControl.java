package io.eventsql;

import java.util.Collection;
import java.util.List;

/**
 * Inspects and controls a consumer, no matter which processes its members run in; obtained from {@link
 * EventSql#consumer}. Changes reach the members through the database: immediately if signals get through, otherwise at
 * the next heartbeat.
 *
 * <p>All methods throw {@link EventSqlException} if a shard is unavailable. Changes already made on other shards remain;
 * the call can be retried. They also throw it, before any change, if a shard was added whose database this process was not given.
 * Thread-safe.
 */
public interface ConsumerControl {
    /**
     * Returns the state of each partition, ordered by shard and partition; an empty list if the consumer was never
     * started. The cost does not depend on the number of stored events.
     */
    List<PartitionState> state();

    /** Pauses the consumer: members finish and commit the events in progress and start no others until {@link #resume}. */
    void pause();

    /** Resumes paused and stopped partitions at their committed offset. */
    void resume();

    /**
     * Moves the consumer to another position in all partitions, backward to replay events or forward to skip them.
     * Members need not be restarted: commits of events that were in progress are rejected. Stopped partitions stay
     * stopped.
     *
     * @throws InvalidInputException if {@code position} is null, or an offset below the log start or beyond the head of a
     *     partition; names the range. No partition was moved.
     * @throws EventSqlException if there is no such consumer
     */
    void seek(StartPosition position);

    /**
     * Moves the consumer in one partition.
     *
     * @param position the next event to handle, in this consumer's stream, at most the head
     * @throws InvalidInputException if there is no such partition, or the offset is below its log start or beyond its head;
     *     names the field and the range
     * @throws EventSqlException if there is no such consumer
     */
    void seek(EventPosition position);

    /**
     * Returns parked and dead-lettered events, ordered by shard, partition and offset.
     *
     * @param max the maximum number of events, 1 to {@value ConsumerSpec#PAGE_EVENTS_MAX}
     */
    List<ParkedEvent> parkedEvents(int max);

    /**
     * Redrives all parked and dead-lettered events: the consumer handles them again, in order. An event that succeeds is
     * removed from the parked events; a key without parked events is handled normally again. An event that fails stays
     * parked, and so do all later events of its key.
     *
     * @return the number of events to be redriven
     */
    long redrive();

    /**
     * Redrives the given events. A parked event is redriven together with all other parked events of its key.
     *
     * @param positions positions of parked or dead-lettered events; others are ignored
     * @return the number of events to be redriven
     */
    long redrive(Collection<EventPosition> positions);

    /**
     * Drops the given events without handling them. Their copies in the dead-letter stream remain. A key without parked
     * events is handled normally again.
     *
     * @param positions positions of parked or dead-lettered events; others are ignored
     * @return the number of events dropped
     */
    long drop(Collection<EventPosition> positions);

    /**
     * Deletes the consumer with its offsets, leases and parked events. Members still running stop. A million parked events takes
     * seconds; on each shard the deletion may take five minutes.
     */
    void delete();
}
