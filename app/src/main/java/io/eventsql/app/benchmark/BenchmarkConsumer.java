package io.eventsql.app.benchmark;

import io.eventsql.StoredEvent;
import io.eventsql.spring.EventSqlListener;
import java.util.List;
import java.util.function.LongSupplier;

/** Handles benchmark events by decoding and recording them. Thread-safe. */
public final class BenchmarkConsumer {
    private final BenchmarkRuns runs;
    private final ConsumeMetrics metrics;
    private final LongSupplier epochMicros;

    /** @param epochMicros the clock for handling times */
    BenchmarkConsumer(BenchmarkRuns runs, ConsumeMetrics metrics, LongSupplier epochMicros) {
        this.runs = runs;
        this.metrics = metrics;
        this.epochMicros = epochMicros;
    }

    /**
     * Records a batch.
     *
     * @param events the events of one partition in order
     */
    @EventSqlListener(
            stream = "${app.stream}",
            consumer = "${app.consumer}",
            batchSize = "${app.page-events}",
            batch = true)
    public void handle(List<StoredEvent> events) {
        DecodedBatch batch = DecodedBatch.of(events);
        runs.record(batch, epochMicros.getAsLong());
        metrics.countForeign(batch.foreign());
    }
}
