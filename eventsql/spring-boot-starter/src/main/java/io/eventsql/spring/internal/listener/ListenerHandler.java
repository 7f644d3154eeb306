package io.eventsql.spring.internal.listener;

import io.eventsql.StoredEvent;
import java.sql.Connection;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Handles the events of a listener. Thread-safe. */
interface ListenerHandler {
    /**
     * Handles one event, or a batch if the listener takes lists.
     *
     * @throws io.eventsql.spring.EventPayloadException if the event cannot be passed to a method; of a batch: as the cause
     * @throws Exception whatever the method throws
     */
    void handle(List<StoredEvent> events, @Nullable Connection connection) throws Exception;
}
