package io.eventsql.internal.consume;

import io.eventsql.StoredEvent;
import java.util.List;

/** Passes erased events of one member without a call of the handler, and counts them. Thread-safe. */
record ErasedEvents(OffsetCommitter committer, Listeners listeners) {
    /** Passes erased events with gapless offsets. */
    void pass(Assignment assignment, List<StoredEvent> events) {
        assignment.recordHandled(events.getFirst().offset(), events.getLast().offset() + 1);
        committer.request();
        count(assignment, events.size());
    }

    /** Reports erased events that are passed otherwise. */
    void count(Assignment assignment, int events) {
        listeners.call(l -> l.eventsErased(assignment.name(), events));
    }
}
