package io.eventsql.runner;

import io.eventsql.Event;
import io.eventsql.EventPublisher;
import io.eventsql.runner.load.PublishTarget;
import java.util.List;
import java.util.concurrent.CompletionStage;

/** Publishes with EventSQL: calls of one event with {@code publish}, others with {@code publishAll}. */
final class EventSqlTarget implements PublishTarget {
    private final EventPublisher publisher;
    private final String stream;

    EventSqlTarget(EventPublisher publisher, String stream) {
        this.publisher = publisher;
        this.stream = stream;
    }

    @Override
    public void publish(List<Event> events) {
        if (events.size() == 1) {
            publisher.publish(stream, events.getFirst());
        } else {
            publisher.publishAll(stream, events);
        }
    }

    @Override
    public CompletionStage<?> publishAsync(List<Event> events) {
        return events.size() == 1
                ? publisher.publishAsync(stream, events.getFirst())
                : publisher.publishAllAsync(stream, events);
    }
}
