package io.eventsql.app.benchmark;

import io.eventsql.EventBatchHandler;
import io.eventsql.StoredEvent;
import java.time.Duration;
import java.util.List;
import java.util.function.LongSupplier;

/** Handles the events of a benchmark: decodes and records them, and does nothing else. Thread-safe. */
public final class BenchmarkConsumer implements EventBatchHandler {
    private final BenchmarkRuns runs;
    private final ConsumeMetrics metrics;
    private final LongSupplier epochMicros;

    /** @param epochMicros the clock that says when a batch was handled */
    BenchmarkConsumer(BenchmarkRuns runs, ConsumeMetrics metrics, LongSupplier epochMicros) {
        this.runs = runs;
        this.metrics = metrics;
        this.epochMicros = epochMicros;
    }

    @Override
    public void handle(List<StoredEvent> events) {
        long startedAtNanos = System.nanoTime();
        DecodedBatch batch = DecodedBatch.of(events);
        runs.record(batch, epochMicros.getAsLong());
        Duration time = Duration.ofNanos(System.nanoTime() - startedAtNanos);
        metrics.handled(events.getFirst().shard(), events.size(), batch.foreign(), time);
    }
}
