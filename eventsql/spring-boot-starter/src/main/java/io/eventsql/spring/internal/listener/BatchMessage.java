package io.eventsql.spring.internal.listener;

import io.eventsql.StoredEvent;
import java.sql.Connection;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.messaging.Message;
import org.springframework.messaging.MessageHeaders;

/** The events of one call of a batch method as a message of spring-messaging. */
record BatchMessage(List<EventMessage> events, @Nullable Connection connection) implements Message<List<EventMessage>> {
    private static final MessageHeaders NONE = new MessageHeaders(Map.of());

    static BatchMessage of(List<StoredEvent> events, @Nullable Connection connection) {
        return new BatchMessage(
                events.stream()
                        .map(event -> new EventMessage(event, connection))
                        .toList(),
                connection);
    }

    @Override
    public List<EventMessage> getPayload() {
        return events;
    }

    @Override
    public MessageHeaders getHeaders() {
        return NONE;
    }
}
