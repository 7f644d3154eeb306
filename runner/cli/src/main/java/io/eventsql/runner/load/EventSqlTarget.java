package io.eventsql.runner.load;

import io.eventsql.Event;
import io.eventsql.EventPublisher;
import io.eventsql.runner.driver.PublishTarget;
import java.util.List;
import java.util.concurrent.CompletionStage;

/** Publishes with EventSQL: calls of one event with {@code publish}, others with {@code publishAll}. Thread-safe. */
public final class EventSqlTarget implements PublishTarget {
    private final EventPublisher publisher;
    private final String stream;

    public EventSqlTarget(EventPublisher publisher, String stream) {
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
