package io.eventsql.runner.driver;

import io.eventsql.Event;
import java.util.List;

/** Takes what a consumer gets. Thread-safe, and quick. */
public interface DeliveryListener {

    /** Events in the order in which they came; those of one key come one after the other, in the order of their delivery. */
    void delivered(List<Event> events);

    /** Consuming goes on badly or not at all; the run fails and shows it. */
    void failed(Throwable failure);
}
