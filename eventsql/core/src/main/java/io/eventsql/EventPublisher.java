package io.eventsql;

import java.util.List;
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
     * @throws PartialPublishException some shards committed, others did not; reports the outcome of each event
     * @throws EventNotStoredException none of the events is stored
     * @throws EventOutcomeUnknownException no event is known to be stored, some may be
     */
    List<EventPosition> publishAll(String stream, List<Event> events);

    /** Publishes events as {@link #publishAll} does, without waiting for the commit; see {@link #publishAsync}. */
    CompletableFuture<List<EventPosition>> publishAllAsync(String stream, List<Event> events);
}
