package io.eventsql.runner.phases;

/**
 * The event counts of one consumer of one stream, including warm-ups.
 *
 * @param stream the stream
 * @param consumer the consumer
 * @param eventsSeen the distinct events received
 * @param eventsLost the events acknowledged and not received
 * @param eventsDuplicated the deliveries of events received before
 * @param orderViolations the events received after a later one of their key
 */
public record ConsumerCounts(
        String stream,
        String consumer,
        long eventsSeen,
        long eventsLost,
        long eventsDuplicated,
        long orderViolations) {}
