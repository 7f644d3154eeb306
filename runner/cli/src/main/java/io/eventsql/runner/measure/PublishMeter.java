package io.eventsql.runner.measure;

import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.load.LoadListener;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Stream;
import org.HdrHistogram.Histogram;

/**
 * Records one phase of load: each event's latency from its intended time and from its call to the acknowledgement, and
 * the delay of calls behind their schedule, all in whole microseconds (rounded down). Every answer is recorded,
 * whatever its value. Thread-safe. Threads are spread over stripes to avoid lock contention.
 */
public final class PublishMeter implements LoadListener {
    private static final int STRIPES = 16;

    private final Stripe[] stripes = Stream.generate(Stripe::new).limit(STRIPES).toArray(Stripe[]::new);
    /** A single counter instead of the sum of stripes, because it is read at each slot of a bounded load. */
    private final LongAdder answeredEvents = new LongAdder();

    private final Map<String, ErrorCount> errors = new ConcurrentHashMap<>();
    /** Guarded by itself. Only one thread writes, so the lock is uncontended. */
    private final Histogram scheduleDelayMicros = Histograms.create();

    @Override
    public void called(long intendedNanos, long calledNanos) {
        synchronized (scheduleDelayMicros) {
            scheduleDelayMicros.recordValue(micros(intendedNanos, calledNanos));
        }
    }

    @Override
    public void acknowledged(long intendedNanos, long calledNanos, long acknowledgedNanos, int events) {
        stripe().acknowledged(intendedNanos, calledNanos, acknowledgedNanos, events);
        answeredEvents.add(events);
    }

    @Override
    public void failed(long intendedNanos, long failedNanos, int events, Throwable failure) {
        String errorClass = failure.getClass().getName();
        ErrorCount error = new ErrorCount(errorClass, events, String.valueOf(failure.getMessage()));
        errors.merge(errorClass, error, ErrorCount::plus);
        stripe().failed(intendedNanos, events);
        answeredEvents.add(events);
    }

    @Override
    public long answeredEvents() {
        return answeredEvents.sum();
    }

    /** Returns the number of events acknowledged so far. */
    public long publishedEvents() {
        return Arrays.stream(stripes).mapToLong(Stripe::publishedEvents).sum();
    }

    /** Returns the number of events failed so far. */
    public long failedEvents() {
        return Arrays.stream(stripes).mapToLong(Stripe::failedEvents).sum();
    }

    /**
     * Returns the measurement so far.
     *
     * @param sentEvents the events passed to the target
     * @param anchor converts times to epoch microseconds
     */
    public PhaseMeasurement measurement(long sentEvents, ClockAnchor anchor) {
        Stripe sum = new Stripe();
        for (Stripe stripe : stripes) {
            stripe.addTo(sum);
        }
        Histogram delay;
        synchronized (scheduleDelayMicros) {
            delay = scheduleDelayMicros.copy();
        }
        return new PhaseMeasurement(
                sentEvents,
                sum.publishedEvents,
                errors.values().stream()
                        .sorted(Comparator.comparing(ErrorCount::errorClass))
                        .toList(),
                sum.firstIntendedNanos == Long.MAX_VALUE ? null : anchor.epochMicrosAt(sum.firstIntendedNanos),
                sum.lastAcknowledgedNanos == Long.MIN_VALUE ? null : anchor.epochMicrosAt(sum.lastAcknowledgedNanos),
                sum.latencyMicros,
                sum.serviceMicros,
                delay);
    }

    private Stripe stripe() {
        return stripes[(int) (Thread.currentThread().threadId() % STRIPES)];
    }

    private static long micros(long fromNanos, long toNanos) {
        return (toNanos - fromNanos) / 1_000;
    }

    /** The measurements of a subset of the threads. */
    private static final class Stripe {
        private final Histogram latencyMicros = Histograms.create();
        private final Histogram serviceMicros = Histograms.create();
        private long publishedEvents;
        private long failedEvents;
        private long firstIntendedNanos = Long.MAX_VALUE;
        private long lastAcknowledgedNanos = Long.MIN_VALUE;

        synchronized void acknowledged(long intendedNanos, long calledNanos, long acknowledgedNanos, int events) {
            latencyMicros.recordValueWithCount(micros(intendedNanos, acknowledgedNanos), events);
            serviceMicros.recordValueWithCount(micros(calledNanos, acknowledgedNanos), events);
            publishedEvents += events;
            firstIntendedNanos = Math.min(firstIntendedNanos, intendedNanos);
            lastAcknowledgedNanos = Math.max(lastAcknowledgedNanos, acknowledgedNanos);
        }

        synchronized void failed(long intendedNanos, int events) {
            failedEvents += events;
            firstIntendedNanos = Math.min(firstIntendedNanos, intendedNanos);
        }

        synchronized long publishedEvents() {
            return publishedEvents;
        }

        synchronized long failedEvents() {
            return failedEvents;
        }

        /** @param sum belongs to the calling thread */
        synchronized void addTo(Stripe sum) {
            sum.publishedEvents += publishedEvents;
            sum.latencyMicros.add(latencyMicros);
            sum.serviceMicros.add(serviceMicros);
            sum.firstIntendedNanos = Math.min(sum.firstIntendedNanos, firstIntendedNanos);
            sum.lastAcknowledgedNanos = Math.max(sum.lastAcknowledgedNanos, lastAcknowledgedNanos);
        }
    }
}
