package io.eventsql;

import java.util.List;
import java.util.Optional;

/**
 * Events of one key, as of one moment.
 *
 * @param version the key's version at that moment: how many events of it were ever stored, also those that are not returned
 * @param events in the order in which they were stored, also if the stream has grown
 * @param next where the next page begins; empty: there are no more events
 */
public record KeyEvents(long version, List<StoredEvent> events, Optional<EventPosition> next) {
    /** Copies the list. */
    public KeyEvents {
        events = List.copyOf(events);
    }
}
