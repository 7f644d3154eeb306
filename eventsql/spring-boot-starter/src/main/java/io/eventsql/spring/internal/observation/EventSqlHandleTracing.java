package io.eventsql.spring.internal.observation;

import io.eventsql.spring.EventSqlHandleContext;
import io.micrometer.observation.Observation;
import io.micrometer.tracing.Link;
import io.micrometer.tracing.Span;
import io.micrometer.tracing.TraceContext;
import io.micrometer.tracing.Tracer;
import io.micrometer.tracing.handler.PropagatingReceiverTracingObservationHandler;
import io.micrometer.tracing.propagation.Propagator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Creates the span of a handler's call, and links that of a batch to the traces of its events. */
public final class EventSqlHandleTracing extends PropagatingReceiverTracingObservationHandler<EventSqlHandleContext> {
    /** Version, trace, span, flags: W3C Trace Context, section 3.2. */
    private static final Pattern TRACE_PARENT =
            Pattern.compile("[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2}).*");

    private final Tracer tracer;

    public EventSqlHandleTracing(Tracer tracer, Propagator propagator) {
        super(tracer, propagator);
        this.tracer = tracer;
    }

    @Override
    public boolean supportsContext(Observation.Context context) {
        return context instanceof EventSqlHandleContext;
    }

    @Override
    public Span.Builder customizeExtractedSpan(EventSqlHandleContext context, Span.Builder builder) {
        for (String traceParent : context.linkedTraceParents()) {
            Matcher parts = TRACE_PARENT.matcher(traceParent);
            if (parts.matches()) {
                TraceContext published = tracer.traceContextBuilder()
                        .traceId(parts.group(1))
                        .spanId(parts.group(2))
                        .sampled((Integer.parseInt(parts.group(3), 16) & 1) == 1)
                        .build();
                builder.addLink(new Link(published));
            }
        }
        return builder;
    }
}
