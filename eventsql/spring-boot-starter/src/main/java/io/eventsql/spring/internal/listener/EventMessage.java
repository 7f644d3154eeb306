package io.eventsql.spring.internal.listener;

import io.eventsql.StoredEvent;
import io.eventsql.spring.EventSqlHeaders;
import java.sql.Connection;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.messaging.Message;
import org.springframework.messaging.MessageHeaders;

/** An event as a message of spring-messaging. */
final class EventMessage implements Message<StoredEvent> {
    private final StoredEvent event;
    private final @Nullable Connection connection;
    private @Nullable MessageHeaders headers;

    EventMessage(StoredEvent event, @Nullable Connection connection) {
        this.event = event;
        this.connection = connection;
    }

    @Override
    public StoredEvent getPayload() {
        return event;
    }

    /** The connection of the transaction in which the event is handled. */
    @Nullable
    Connection connection() {
        return connection;
    }

    /** Created on first use, because few methods take headers. */
    @Override
    public MessageHeaders getHeaders() {
        MessageHeaders made = headers;
        if (made == null) {
            made = new Headers(event);
            headers = made;
        }
        return made;
    }

    /** The event's own headers, {@code id} and {@code timestamp} included, which Spring would otherwise replace. */
    private static final class Headers extends MessageHeaders {
        private static final long serialVersionUID = 1L;
        private static final long NO_TIMESTAMP = -1;

        Headers(StoredEvent event) {
            super(Map.of(), ID_VALUE_NONE, NO_TIMESTAMP);
            Map<String, Object> raw = getRawHeaders();
            raw.putAll(event.headers());
            if (event.key() != null) {
                raw.put(EventSqlHeaders.KEY, event.key());
            }
            raw.put(EventSqlHeaders.STREAM, event.stream());
            raw.put(EventSqlHeaders.SHARD, event.shard());
            raw.put(EventSqlHeaders.PARTITION, event.partition());
            raw.put(EventSqlHeaders.OFFSET, event.offset());
            raw.put(EventSqlHeaders.PUBLISHED_AT, event.publishedAt());
        }
    }
}
