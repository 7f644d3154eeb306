package io.eventsql.spring;

import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.micrometer.observation.transport.Kind;
import io.micrometer.observation.transport.SenderContext;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** An observed publish call. The entries that a tracer puts into the carrier become headers of all its events. */
public final class EventSqlPublishContext extends SenderContext<Map<String, String>> {
    private final String stream;
    private final List<Event> events;
    private volatile @Nullable EventPosition position;

    EventSqlPublishContext(String stream, List<Event> events) {
        super((carrier, name, value) -> Objects.requireNonNull(carrier).put(name, value), Kind.PRODUCER);
        this.stream = stream;
        this.events = List.copyOf(events);
        setCarrier(new LinkedHashMap<>());
        setRemoteServiceName(EventSqlPublishConvention.SYSTEM);
    }

    /** Returns the stream. */
    public String stream() {
        return stream;
    }

    /** Returns the events without the headers of the trace context. */
    public List<Event> events() {
        return events;
    }

    /** Returns the event's position; {@code null} until it is known, inside a transaction, and for several events. */
    public @Nullable EventPosition position() {
        return position;
    }

    void setPosition(EventPosition value) {
        position = value;
    }

    List<Event> eventsWithHeaders() {
        Map<String, String> added = Objects.requireNonNull(getCarrier());
        if (added.isEmpty()) {
            return events;
        }
        return events.stream()
                .map(event -> {
                    Map<String, String> headers = new LinkedHashMap<>(event.headers());
                    headers.putAll(added);
                    return event.withHeaders(headers);
                })
                .toList();
    }
}
