package io.eventsql.spring;

import io.eventsql.StoredEvent;
import io.micrometer.observation.transport.Kind;
import io.micrometer.observation.transport.ReceiverContext;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * An observed call of a handler with one event or a batch of one partition.
 *
 * <p>Handling an event continues the trace of its publication. So does handling a batch whose events were all published in
 * one span, such as by one {@code publishAll}. Any other batch has no single cause: as part of the first event's trace it
 * would be wrong for all others, so that it starts a new trace with links to those of its events.
 */
public final class EventSqlHandleContext extends ReceiverContext<Map<String, String>> {
    /** The header of W3C Trace Context. */
    static final String TRACE_PARENT = "traceparent";
    /** OpenTelemetry's default limit. */
    private static final int LINKS_MAX = 128;

    private final String consumer;
    private final List<StoredEvent> events;
    private final boolean batch;
    private final List<String> links;

    EventSqlHandleContext(String consumer, List<StoredEvent> events, boolean batch) {
        super((carrier, name) -> carrier.get(name), Kind.CONSUMER);
        this.consumer = consumer;
        this.events = List.copyOf(events);
        this.batch = batch;
        List<String> parents = events.stream()
                .map(event -> event.headers().get(TRACE_PARENT))
                .filter(Objects::nonNull)
                .distinct()
                .limit(LINKS_MAX)
                .toList();
        boolean oneParent = events.size() == 1
                || parents.isEmpty()
                || (parents.size() == 1
                        && events.stream().allMatch(event -> event.headers().containsKey(TRACE_PARENT)));
        this.links = oneParent ? List.of() : parents;
        setCarrier(oneParent ? events.getFirst().headers() : Map.of());
        setRemoteServiceName(EventSqlPublishConvention.SYSTEM);
    }

    /** Returns the stream. */
    public String stream() {
        return events.getFirst().stream();
    }

    /** Returns the consumer's name. */
    public String consumer() {
        return consumer;
    }

    /** Returns the events, at least one. */
    public List<StoredEvent> events() {
        return events;
    }

    /** Whether the handler takes batches, also if this one has only one event. */
    public boolean isBatch() {
        return batch;
    }

    /** Returns the distinct {@code traceparent} headers of a batch without a single parent; otherwise an empty list. */
    public List<String> linkedTraceParents() {
        return links;
    }
}
