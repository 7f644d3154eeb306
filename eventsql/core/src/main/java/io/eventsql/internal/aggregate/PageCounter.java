package io.eventsql.internal.aggregate;

import io.eventsql.ContinuousAggregateSpec;
import io.eventsql.StoredEvent;
import io.eventsql.TransactionalEventBatchHandler;
import io.eventsql.internal.sql.AggregateRows;
import java.sql.Connection;
import java.util.List;

/**
 * Adds each page of the stream to one generation, in the transaction that commits the consumer's offset. Events that the generation
 * contains already are not counted again, even if an operator moves the consumer backward. Thread-safe.
 */
final class PageCounter implements TransactionalEventBatchHandler {
    private final ContinuousAggregateSpec spec;
    private final AggregateRows rows;
    private final int generation;

    PageCounter(ContinuousAggregateSpec spec, AggregateRows rows, int generation) {
        this.spec = spec;
        this.rows = rows;
        this.generation = generation;
    }

    @Override
    public void handle(List<StoredEvent> events, Connection connection) throws Exception {
        if (rows.add(connection, generation, events, PageTotals.of(spec, events))) {
            return;
        }
        long next = rows.nextOffset(connection, generation, events.getFirst().partition());
        List<StoredEvent> uncounted =
                events.stream().filter(event -> event.offset() >= next).toList();
        if (!uncounted.isEmpty()) {
            rows.add(connection, generation, uncounted, PageTotals.of(spec, uncounted));
        }
    }
}
