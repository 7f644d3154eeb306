package io.eventsql;

import java.util.Collection;
import java.util.List;

/**
 * Shows and changes a consumer, wherever its members run; made by {@link EventSql#consumer}. Changes reach members
 * through the database, at once by a signal, without one at their next heartbeat. All methods throw {@link
 * EventSqlException} if a shard does not answer; what was changed on others stays then, and the call can be repeated.
 * Thread-safe.
 */
public interface ConsumerControl {
    /** How the consumer is, by shard and partition; empty if it was never started. Cheap on big streams, too. */
    List<PartitionState> state();

    /** Members finish the events they have, commit them, and handle no more, until {@link #resume}. */
    void pause();

    /** Paused and stopped partitions are handled again, from where they are. */
    void resume();

    /**
     * Moves the consumer to another place in all partitions: replays, or passes over. Members need not be restarted:
     * what they do meanwhile is refused. Stopped partitions stay stopped.
     */
    void seek(StartPosition position);

    /**
     * Moves the consumer in one partition.
     *
     * @param position the event to handle next, of this consumer's stream; one that does not exist is out of range
     */
    void seek(EventPosition position);

    /**
     * Events set aside, by shard, partition and offset.
     *
     * @param max how many at most, 1 to {@value ConsumerSpec#PAGE_EVENTS_MAX}
     */
    List<ParkedEvent> parkedEvents(int max);

    /**
     * Has all events set aside handled again by the consumer, in their order. What succeeds is no longer set aside; a
     * key none of whose events is parked any more is handled again as any other. What fails stays, and with a parked
     * one all later ones of its key.
     *
     * @return how many events
     */
    long redrive();

    /**
     * Has these events handled again. With a parked one, all earlier and later ones of its key go, too.
     *
     * @return how many events
     */
    long redrive(Collection<EventPosition> positions);

    /**
     * Forgets these events; copies in the dead-letter stream stay there. A key whose last parked event is dropped is
     * handled again as any other.
     *
     * @return how many events
     */
    long drop(Collection<EventPosition> positions);

    /** Deletes the consumer: its offsets, leases and what it has set aside. Members that still run end by themselves. */
    void delete();
}
