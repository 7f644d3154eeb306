package io.eventsql.app.benchmark;

import io.eventsql.StoredEvent;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.event.NotABenchmarkEventException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The benchmark events of one batch of a partition with their keys, in order. Other events are only counted. Not
 * thread-safe.
 */
final class DecodedBatch {
    private final String partition;
    private final BenchmarkEvent[] events;
    private final @Nullable String[] keys;
    private int size;
    private int foreign;

    private DecodedBatch(String partition, int capacity) {
        this.partition = partition;
        events = new BenchmarkEvent[capacity];
        keys = new String[capacity];
    }

    /** @param storedEvents the events, at least one */
    static DecodedBatch of(List<StoredEvent> storedEvents) {
        StoredEvent first = storedEvents.getFirst();
        DecodedBatch batch = new DecodedBatch(first.shard() + "/" + first.partition(), storedEvents.size());
        for (StoredEvent storedEvent : storedEvents) {
            batch.add(storedEvent);
        }
        return batch;
    }

    private void add(StoredEvent storedEvent) {
        try {
            events[size] = BenchmarkEvent.decode(storedEvent.value());
            keys[size] = storedEvent.key();
            size++;
        } catch (NotABenchmarkEventException e) {
            foreign++;
        }
    }

    /** Returns the partition of the batch as {@code shard/partition}. */
    String partition() {
        return partition;
    }

    /** Returns the number of benchmark events. */
    int size() {
        return size;
    }

    /** Returns the number of other events. */
    int foreign() {
        return foreign;
    }

    BenchmarkEvent event(int index) {
        return events[index];
    }

    @Nullable
    String key(int index) {
        return keys[index];
    }

    /**
     * Returns the end index (exclusive) of the consecutive events from {@code from} with the same run, runner and
     * phase.
     */
    int endOfPhase(int from) {
        int end = from + 1;
        while (end < size && isSamePhase(events[from], events[end])) {
            end++;
        }
        return end;
    }

    private static boolean isSamePhase(BenchmarkEvent one, BenchmarkEvent other) {
        return one.runner() == other.runner()
                && one.warmup() == other.warmup()
                && one.run().equals(other.run());
    }
}
