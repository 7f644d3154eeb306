package io.eventsql.app.benchmark;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.MeterRegistry;

/** What the starter cannot count: events that are none of a benchmark. Thread-safe. */
final class ConsumeMetrics {
    private final Counter foreignEvents;

    ConsumeMetrics(MeterRegistry registry, String stream) {
        foreignEvents = Counter.builder("eventsql.app.events.foreign")
                .description("Events handled that are no benchmark events")
                .tags("stream", stream)
                .register(registry);
    }

    /** Counts those of a handled batch. */
    void countForeign(int events) {
        foreignEvents.increment(events);
    }
}
