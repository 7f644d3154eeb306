package io.eventsql.runner.phases;

/**
 * What one consumer of one stream has seen, warm-ups included.
 *
 * @param stream the stream
 * @param consumer the consumer
 * @param eventsSeen different events
 * @param eventsLost events that were acknowledged and not seen
 * @param eventsDuplicated deliveries of an event that had been seen before
 * @param orderViolations events that came after a later one of their key
 */
public record ConsumerCounts(
        String stream,
        String consumer,
        long eventsSeen,
        long eventsLost,
        long eventsDuplicated,
        long orderViolations) {}
