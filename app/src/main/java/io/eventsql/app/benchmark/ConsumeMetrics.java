package io.eventsql.app.benchmark;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.MeterRegistry;

/** Counts events that are not benchmark events, which the starter cannot count. Thread-safe. */
final class ConsumeMetrics {
    private final Counter foreignEvents;

    ConsumeMetrics(MeterRegistry registry, String stream) {
        foreignEvents = Counter.builder("eventsql.app.events.foreign")
                .description("Handled events that are not benchmark events")
                .tags("stream", stream)
                .register(registry);
    }

    /** Counts the foreign events of a handled batch. */
    void countForeign(int events) {
        foreignEvents.increment(events);
    }
}
