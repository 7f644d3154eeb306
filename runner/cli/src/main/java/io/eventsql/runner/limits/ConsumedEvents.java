package io.eventsql.runner.limits;

import io.eventsql.StoredEvent;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.event.EpochMicros;
import io.eventsql.benchmark.event.NumberSet;
import io.eventsql.runner.measure.Histograms;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * What one consumer received, checked: offsets without gaps in each partition, values that are events of this run, and
 * no event twice. Records the time from an event's intended publish time. Thread-safe.
 */
final class ConsumedEvents {
    private static final long POLL_NANOS = Duration.ofMillis(2).toNanos();
    private static final long NO_PROGRESS_NANOS = Duration.ofSeconds(60).toNanos();

    private final LimitsContext context;
    private final Map<Integer, Long> nextOffsets = new HashMap<>();
    private final NumberSet numbers = new NumberSet();
    private Histogram latencyMicros = Histograms.create();
    private long lastNanos;
    private @Nullable String violation;

    ConsumedEvents(LimitsContext context) {
        this.context = context;
    }

    /** Adds a page of a stream, as a batch handler receives it. */
    void accept(List<StoredEvent> events) {
        long now = EpochMicros.now();
        for (StoredEvent event : events) {
            accept(event.partition(), event.offset(), event.value(), now);
        }
    }

    /** Adds one event. The first one of a partition may have any offset. */
    synchronized void accept(int partition, long offset, byte[] value, long nowMicros) {
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
        latencyMicros.recordValue(Math.max(0, nowMicros - event.intendedAtMicros()));
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
    long await(long events) {
        long count = -1;
        long progressed = context.clock().nanos();
        while (true) {
            context.checkStopped();
            synchronized (this) {
                if (violation != null) {
                    throw new IllegalStateException(violation);
                }
                if (numbers.size() >= events) {
                    return lastNanos;
                }
                if (numbers.size() != count) {
                    count = numbers.size();
                    progressed = context.clock().nanos();
                }
            }
            if (context.clock().nanos() - progressed > NO_PROGRESS_NANOS) {
                throw new IllegalStateException("The consumer received " + count + " of " + events + " events");
            }
            context.clock().parkNanos(POLL_NANOS);
        }
    }

    /** Returns the latencies recorded since the last call. */
    synchronized Histogram takeLatencyMicros() {
        Histogram taken = latencyMicros;
        latencyMicros = Histograms.create();
        return taken;
    }
}
