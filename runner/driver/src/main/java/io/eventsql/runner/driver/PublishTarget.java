package io.eventsql.runner.driver;

import io.eventsql.Event;
import java.util.List;
import java.util.concurrent.CompletionStage;

/** Where events are sent. Thread-safe. */
public interface PublishTarget {

    /** Publishes the events of one call; returns when they are stored durably and throws when they are not. */
    void publish(List<Event> events);

    /** The same without waiting: the stage completes when they are stored, or fails. May block to slow its callers down. */
    CompletionStage<?> publishAsync(List<Event> events);
}
