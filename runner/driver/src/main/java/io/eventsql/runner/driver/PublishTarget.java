package io.eventsql.runner.driver;

import io.eventsql.Event;
import java.util.List;
import java.util.concurrent.CompletionStage;

/** The target of published events. Thread-safe. */
public interface PublishTarget {

    /** Publishes the events of one call. Returns when they are stored durably, and throws if they are not. */
    void publish(List<Event> events);

    /**
     * Publishes the events of one call asynchronously. The stage completes when they are stored durably, and fails if
     * they are not. May block for backpressure.
     */
    CompletionStage<?> publishAsync(List<Event> events);
}
