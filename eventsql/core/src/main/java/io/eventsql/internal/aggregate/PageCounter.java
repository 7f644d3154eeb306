package io.eventsql.internal.aggregate;

import io.eventsql.ContinuousAggregateSpec;
import io.eventsql.StoredEvent;
import io.eventsql.TransactionalEventBatchHandler;
import io.eventsql.internal.sql.AggregateRows;
import io.eventsql.internal.sql.AggregateRows.Counted;
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
        Counted counted = rows.counted(connection, generation, events.getFirst().partition());
        long next = counted.nextOffset();
        // In one log, no event is earlier than the one before it.
        if (events.stream()
                .anyMatch(event -> event.offset() < next && event.publishedAt().isAfter(counted.lastPublishedAt()))) {
            throw new IllegalStateException(
                    "stream " + spec.stream() + " was created anew after aggregate " + spec.name()
                            + " has counted its events below offset " + next + "; call ContinuousAggregate.rebuild()");
        }
        List<StoredEvent> uncounted =
                events.stream().filter(event -> event.offset() >= next).toList();
        if (!uncounted.isEmpty()) {
            rows.add(connection, generation, uncounted, PageTotals.of(spec, uncounted));
        }
    }
}
