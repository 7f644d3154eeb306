package io.eventsql.spring.observation;

import io.eventsql.StoredEvent;
import io.micrometer.observation.transport.Kind;
import io.micrometer.observation.transport.ReceiverContext;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * One call of a handler that is observed, with one event or a batch of one partition.
 *
 * <p>An event's handling continues the trace of its publishing. So does that of a batch whose events were all published
 * in one trace step, as by one {@code publishAll}. The handling of any other batch has no single cause: making it part of
 * the first event's trace would be wrong for all others, so it begins a trace of its own, linked to each of theirs.
 */
public final class EventSqlHandleContext extends ReceiverContext<Map<String, String>> {
    /** The header of W3C Trace Context. */
    static final String TRACE_PARENT = "traceparent";
    /** As many links as OpenTelemetry keeps by default. */
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

    /** The stream the events come from. */
    public String stream() {
        return events.getFirst().stream();
    }

    /** The consumer that handles them. */
    public String consumer() {
        return consumer;
    }

    /** The events, at least one. */
    public List<StoredEvent> events() {
        return events;
    }

    /** Whether the handler takes batches; this one may have one event only. */
    public boolean isBatch() {
        return batch;
    }

    /** The different {@code traceparent} headers of a batch that has no single parent; otherwise empty. */
    public List<String> linkedTraceParents() {
        return links;
    }
}
