package io.eventsql;

import java.time.Instant;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;

/**
 * Publishes events. Thread-safe; a process needs only one ({@link EventSql#publisher()}).
 *
 * <p>All methods share these guarantees:
 *
 * <ul>
 *   <li>If a position is returned, the event is committed in the database.
 *   <li>Calls are batched while the previous append is in progress, so that concurrent callers share one commit.
 *   <li>Events with the same key that one publisher publishes one after the other, with or without waiting, are stored in
 *       that order and exactly once, even if the library retries an append.
 *   <li>If the buffer ({@link Settings#bufferBytes()}) is full, the caller blocks. A call ends after {@link
 *       Settings#publishTimeout()} at the latest: with {@link EventNotStoredException} if the events were never sent or
 *       the database rolled them back, with {@link EventOutcomeUnknownException} if they were sent and the outcome is in
 *       doubt. An event that the database rejects because of its content, for example by a trigger or a constraint of
 *       the application, fails its call at once and no other. The message contains the database's sentence and the
 *       time waited.
 *   <li>A caller that is interrupted while it waits for the outcome gets an {@link EventOutcomeUnknownException} at once, and
 *       the event may still be stored; while it waits for room in the buffer, an {@link EventNotStoredException}. Its interrupt
 *       flag is set.
 *   <li>Invalid input is rejected with {@link InvalidInputException} and an unknown stream with {@link
 *       UnknownStreamException}. Both are thrown by the call itself, before anything is sent.
 * </ul>
 */
public interface EventPublisher {

    /**
     * Publishes one event and waits until it is committed.
     *
     * @throws EventNotStoredException the event is not stored
     * @throws EventOutcomeUnknownException the event may be stored
     */
    EventPosition publish(String stream, Event event);

    /**
     * Publishes one event if its key has the expected version, and waits until it is committed. A conflict is the outcome of
     * this call alone: other calls are not affected. If the outcome is unknown, load the key again ({@link EventSql#readKey}) and
     * repeat the call with the same expected version: only one of the two can be stored. An id in the event tells them apart.
     *
     * @param event an event with a key
     * @throws VersionConflictException the key has another version; nothing was stored
     * @throws InvalidInputException also if the stream does not count the events of keys
     * @throws EventNotStoredException the event is not stored
     * @throws EventOutcomeUnknownException the event may be stored
     */
    EventPosition publish(String stream, Event event, ExpectedVersion expected);

    /** Publishes one event as {@link #publish(String, Event, ExpectedVersion)} does, without waiting for the commit. */
    CompletableFuture<EventPosition> publishAsync(String stream, Event event, ExpectedVersion expected);

    /**
     * Publishes events of one key if it has the expected version, and waits until they are committed: all of them or none.
     * Each raises the version by one.
     *
     * @param events with the same key: at least 1 event, at most {@link Settings#maxBatchEvents()} events and {@link
     *     Settings#maxBatchBytes()} bytes
     * @throws VersionConflictException the key has another version; nothing was stored
     * @throws InvalidInputException also if the stream does not count the events of keys
     * @throws EventNotStoredException none of the events is stored
     * @throws EventOutcomeUnknownException the events may be stored
     */
    List<EventPosition> publishAll(String stream, List<Event> events, ExpectedVersion expected);

    /** Publishes events as {@link #publishAll(String, List, ExpectedVersion)} does, without waiting for the commit. */
    CompletableFuture<List<EventPosition>> publishAllAsync(String stream, List<Event> events, ExpectedVersion expected);

    /**
     * Publishes one event without waiting for the commit. Blocks only while the buffer is full, at most for {@link
     * Settings#publishTimeout()}.
     *
     * @return a future that completes when the event is committed, or fails as {@link #publish} does. Continuations
     *     without an executor run on virtual threads of their own, usually one after the other in the order of the
     *     commits. They may block and publish; the next continuation then runs on another thread, a few milliseconds
     *     later.
     */
    CompletableFuture<EventPosition> publishAsync(String stream, Event event);

    /**
     * Publishes events and waits until they are committed. Events of the same shard are committed together or not at all;
     * events without a key all go to one partition.
     *
     * @param events at most {@link Settings#maxBatchEvents()} events and {@link Settings#maxBatchBytes()} bytes
     * @return the positions, in the order of {@code events}
     * @throws PartialPublishException the outcomes on several shards differ; reports that of each event
     * @throws EventNotStoredException none of the events is stored
     * @throws EventOutcomeUnknownException no event is known to be stored, some may be
     */
    List<EventPosition> publishAll(String stream, List<Event> events);

    /** Publishes events as {@link #publishAll} does, without waiting for the commit; see {@link #publishAsync}. */
    CompletableFuture<List<EventPosition>> publishAllAsync(String stream, List<Event> events);

    /**
     * Schedules an event: it is appended to its stream when it is due, by the clock of its shard's database, and waits in that
     * database until then. Waits until that is committed. Never appended early; usually a few milliseconds late, later while
     * no process is running. Due events are appended in the order of their times and ids. For the order of a key, an event
     * counts from when it is appended: one that is published in the meantime comes first.
     *
     * <p>{@link EventSql#cancelScheduled} prevents it, {@link EventSql#scheduledEvents} lists what is scheduled.
     *
     * @param due rounded up to milliseconds, at most {@link ScheduleId#AHEAD_MAX} ahead; a time in the past means now
     * @return identifies the scheduled event
     * @throws EventNotStoredException the event is not scheduled
     * @throws EventOutcomeUnknownException the event may be scheduled, or appended already
     */
    UUID schedule(String stream, Event event, Instant due);

    /**
     * Schedules an event as {@link #schedule(String, Event, Instant)} does, under an id that was made before: the call can be
     * repeated, by any process, and schedules the event once. A call after the event is due cannot find out whether it was
     * appended or cancelled, and fails with {@link EventOutcomeUnknownException} without scheduling it.
     *
     * @param id made by {@link ScheduleId#next}, which determines when the event is due
     * @throws EventNotStoredException the event is not scheduled
     * @throws EventOutcomeUnknownException the event may be scheduled, or appended already
     */
    void schedule(String stream, Event event, UUID id);
}
