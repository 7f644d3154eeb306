package io.eventsql;

import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * Publishes events. Thread-safe; one is enough for a process ({@link EventSql#publisher()}).
 *
 * <p>What holds for all methods:
 *
 * <ul>
 *   <li>A returned position means that the event is committed in the database.
 *   <li>Calls gather while the previous batch is on its way, so many concurrent callers share one commit.
 *   <li>Events of one key, published one after the other by one publisher, also without waiting, are stored in that
 *       order, once each, also across retries of the library.
 *   <li>When the buffer ({@link Settings#bufferBytes()}) is full, the caller waits. A call ends at {@link
 *       Settings#publishTimeout()}: with {@link EventNotStoredException} if the events were never sent or were refused,
 *       with {@link EventOutcomeUnknownException} if they were sent and the database did not answer.
 *   <li>Wrong input is refused with {@link InvalidInputException} before anything is sent, an unknown stream with
 *       {@link UnknownStreamException}, both thrown by the call itself.
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
     * Publishes one event. Blocks only while the buffer is full, at most for {@link Settings#publishTimeout()}.
     *
     * @return completes when the event is committed, or fails as {@link #publish} does. Continuations without an
     *     executor run on the library's appending thread: keep them short and never block there.
     */
    CompletableFuture<EventPosition> publishAsync(String stream, Event event);

    /**
     * Publishes events and waits until they are committed. Events that go to the same shard commit together or not at
     * all; events without a key go to one shard and one partition.
     *
     * @param events at most {@link Settings#maxBatchEvents()} events and {@link Settings#maxBatchBytes()} bytes
     * @return the positions, in the order of {@code events}
     * @throws PartialPublishException some shards committed, others did not; says for each event what became of it
     * @throws EventNotStoredException none of the events is stored
     * @throws EventOutcomeUnknownException no event is known to be stored, some may be
     */
    List<EventPosition> publishAll(String stream, List<Event> events);

    /** As {@link #publishAll}, without waiting; see {@link #publishAsync}. */
    CompletableFuture<List<EventPosition>> publishAllAsync(String stream, List<Event> events);
}
