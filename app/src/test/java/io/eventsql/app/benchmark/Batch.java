package io.eventsql.app.benchmark;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.benchmark.event.BenchmarkEvent;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Builds a batch of stored events for a handler. */
final class Batch {
    static final String RUN = "0123abcd";

    private final int partition;
    private final List<StoredEvent> events = new ArrayList<>();

    private Batch(int partition) {
        this.partition = partition;
    }

    static Batch ofPartition(int partition) {
        return new Batch(partition);
    }

    static Batch of(BenchmarkEvent... events) {
        Batch batch = new Batch(0);
        for (BenchmarkEvent event : events) {
            batch.add(null, event);
        }
        return batch;
    }

    static BenchmarkEvent measured(long number) {
        return new BenchmarkEvent(RUN, 0, false, number, 0);
    }

    Batch add(String key, BenchmarkEvent event) {
        return addValue(key, event.encode(BenchmarkEvent.EVENT_BYTES_MIN));
    }

    /** Adds measured events of the run with the given key, in order. */
    Batch addNumbers(String key, long... numbers) {
        for (long number : numbers) {
            add(key, measured(number));
        }
        return this;
    }

    Batch addForeign(String text) {
        return addValue(null, text.getBytes(UTF_8));
    }

    private Batch addValue(String key, byte[] value) {
        var position = new EventPosition("account_created", 2, partition, events.size());
        events.add(new StoredEvent(position, key, value, Map.of(), Instant.EPOCH));
        return this;
    }

    List<StoredEvent> storedEvents() {
        return events;
    }

    DecodedBatch decoded() {
        return DecodedBatch.of(events);
    }
}
