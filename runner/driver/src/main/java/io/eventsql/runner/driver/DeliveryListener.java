package io.eventsql.runner.driver;

import io.eventsql.Event;
import java.util.List;

/** Callbacks for the deliveries to a consumer. Implementations must be thread-safe and fast. */
public interface DeliveryListener {

    /** Called with events in the order of their delivery. Events of one key are never delivered concurrently. */
    void delivered(List<Event> events);

    /** Called when consuming fails temporarily or permanently. The run then fails and reports it. */
    void failed(Throwable failure);
}
