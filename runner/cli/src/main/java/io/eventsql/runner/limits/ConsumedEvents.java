package io.eventsql.runner.limits;

import io.eventsql.StoredEvent;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.event.NumberSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What one consumer received, checked: offsets without gaps in each partition, values that are events of this run, and
 * no event twice. Thread-safe.
 */
final class ConsumedEvents {
    private static final Duration POLL = Duration.ofMillis(2);
    private static final Duration NO_PROGRESS = Duration.ofSeconds(60);

    private final LimitsContext context;
    private final Map<Integer, Long> nextOffsets = new HashMap<>();
    private final NumberSet numbers = new NumberSet();
    private long lastNanos;
    private @Nullable String violation;

    ConsumedEvents(LimitsContext context) {
        this.context = context;
    }

    /** Adds a page of a stream, as a batch handler receives it. */
    void accept(List<StoredEvent> events) {
        for (StoredEvent event : events) {
            accept(event.partition(), event.offset(), event.value());
        }
    }

    /** Adds one event. The first one of a partition may have any offset. */
    synchronized void accept(int partition, long offset, byte[] value) {
        Long next = nextOffsets.put(partition, offset + 1);
        if (next != null && next != offset) {
            fail("Partition " + partition + ": expected offset " + next + ", but received " + offset);
            return;
        }
        BenchmarkEvent event;
        try {
            event = BenchmarkEvent.decode(value);
        } catch (RuntimeException e) {
            fail("Partition " + partition + ", offset " + offset + ": " + e.getMessage());
            return;
        }
        if (!event.run().equals(context.run()) || !numbers.add(event.number())) {
            fail("Partition " + partition + ", offset " + offset + ": unexpected event " + event);
        }
        lastNanos = context.clock().nanos();
    }

    /** Records a failure of the consumer. Only the first one is kept. */
    synchronized void fail(String message) {
        violation = violation == null ? message : violation;
    }

    /**
     * Waits until a number of events has been consumed since the creation. Returns the time of the last one on the
     * monotonic clock.
     *
     * @throws IllegalStateException if a check failed, or no event arrives for a long time
     * @throws RunStoppedException after a stop signal
     */
    private long await(long events) throws SQLException {
        long count = context.await(this::checkedCount, events, NO_PROGRESS, POLL);
        if (count < events) {
            throw new IllegalStateException("The consumer received " + count + " of " + events + " events");
        }
        synchronized (this) {
            return lastNanos;
        }
    }

    /**
     * Publishes, and waits until what was published is consumed. Returns the events over the time until then.
     *
     * @param publishing publishes events, the only ones that are consumed
     */
    MeasuredInterval during(Supplier<MeasuredInterval> publishing) throws SQLException {
        long start = context.clock().nanos();
        MeasuredInterval published = publishing.get();
        long end = await(published.events());
        return new MeasuredInterval(published.events(), published.calls(), end - start);
    }

    private synchronized long checkedCount() {
        if (violation != null) {
            throw new IllegalStateException(violation);
        }
        return numbers.size();
    }
}
