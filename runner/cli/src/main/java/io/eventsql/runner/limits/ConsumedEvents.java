package io.eventsql.runner.limits;

import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.event.NumberSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What one consumer received, checked: offsets without gaps in each partition, values that are events of this run, and
 * no event twice. Thread-safe.
 */
final class ConsumedEvents {
    private static final Duration POLL = Duration.ofMillis(2);
    private static final Duration NO_PROGRESS = Duration.ofSeconds(60);
    private static final long NONE = -1;

    private final LimitsContext context;
    /** By partition; {@link #NONE} before its first event. */
    private final long[] nextOffsets = new long[StreamSpec.PARTITIONS_MAX];

    private final NumberSet numbers = new NumberSet();
    private long lastNanos;
    private @Nullable String violation;

    ConsumedEvents(LimitsContext context) {
        this.context = context;
        Arrays.fill(nextOffsets, NONE);
    }

    /** Adds a page of a stream, as a batch handler receives it. Its values are decoded while other pages are, too. */
    void accept(List<StoredEvent> page) {
        long[] decoded = new long[page.size()];
        for (int i = 0; i < decoded.length; i++) {
            StoredEvent event = page.get(i);
            decoded[i] = number(event.partition(), event.offset(), event.value());
        }
        synchronized (this) {
            for (int i = 0; i < decoded.length; i++) {
                StoredEvent event = page.get(i);
                add(event.partition(), event.offset(), decoded[i]);
            }
            lastNanos = context.clock().nanos();
        }
    }

    /** Adds one event. The first one of a partition may have any offset. */
    void accept(int partition, long offset, byte[] value) {
        long decoded = number(partition, offset, value);
        synchronized (this) {
            add(partition, offset, decoded);
            lastNanos = context.clock().nanos();
        }
    }

    /** Returns the number of an event of this run; {@link #NONE}, after recording the failure, if it is none. */
    private long number(int partition, long offset, byte[] value) {
        try {
            BenchmarkEvent event = BenchmarkEvent.decode(value);
            if (event.run().equals(context.run())) {
                return event.number();
            }
            fail("Partition " + partition + ", offset " + offset + ": unexpected event " + event);
        } catch (RuntimeException e) {
            fail("Partition " + partition + ", offset " + offset + ": " + e.getMessage());
        }
        return NONE;
    }

    /** The caller holds the lock. */
    private void add(int partition, long offset, long number) {
        long next = nextOffsets[partition];
        if (next != NONE && next != offset) {
            fail("Partition " + partition + ": expected offset " + next + ", but received " + offset);
        }
        nextOffsets[partition] = offset + 1;
        if (number != NONE && !numbers.add(number)) {
            fail("Partition " + partition + ", offset " + offset + ": event " + number + " for the second time");
        }
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
