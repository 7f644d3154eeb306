package io.eventsql.runner.phases;

import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.load.LoadListener;
import io.eventsql.runner.load.LoadPhase;
import io.eventsql.runner.measure.Histograms;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.PublishMeter;
import io.eventsql.runner.measure.RunSeries;
import io.eventsql.runner.spec.PhaseSpec;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.HdrHistogram.Histogram;

/** A phase in progress and the outcome of its events. Thread-safe. */
public final class PhaseLoad implements LoadListener {
    private final PhaseSpec spec;
    private final long eventsPerSecond;
    private final LoadPhase time;
    private final RunSeries series;
    private final PublishMeter meter = new PublishMeter();
    /** Guarded by itself. */
    private final Histogram endToEndMicros = Histograms.create();

    private final LongAdder missedEvents = new LongAdder();
    private final LongAdder deliveredEvents = new LongAdder();
    private final AtomicLong lastDeliveredAtMicros = new AtomicLong();
    private volatile long sentEvents;
    private volatile long endedNanos;

    /**
     * @param eventsPerSecond the rate of an open loop; 0 for a closed loop
     * @param time the start and end of the phase
     * @param series records the phase second by second
     */
    PhaseLoad(PhaseSpec spec, long eventsPerSecond, LoadPhase time, RunSeries series) {
        this.spec = spec;
        this.eventsPerSecond = eventsPerSecond;
        this.time = time;
        this.series = series;
        this.endedNanos = time.endNanos();
    }

    @Override
    public void called(long intendedNanos, long calledNanos) {
        meter.called(intendedNanos, calledNanos);
    }

    @Override
    public void sent(long intendedNanos, long calledNanos, int events) {
        series.recordSent(intendedNanos, calledNanos, events);
    }

    @Override
    public void missed(long intendedNanos, int events) {
        missedEvents.add(events);
        series.recordMissed(intendedNanos, events);
    }

    @Override
    public void acknowledged(long intendedNanos, long calledNanos, long acknowledgedNanos, int events) {
        series.recordAcknowledged(acknowledgedNanos, (acknowledgedNanos - intendedNanos) / 1_000, events);
        meter.acknowledged(intendedNanos, calledNanos, acknowledgedNanos, events);
    }

    @Override
    public void failed(long intendedNanos, long failedNanos, int events, Throwable failure) {
        series.recordFailed(failedNanos, events);
        meter.failed(intendedNanos, failedNanos, events, failure);
    }

    @Override
    public long answeredEvents() {
        return meter.answeredEvents();
    }

    /** Records that a consumer received some of its events at a time. */
    void recordDelivered(long[] latenciesMicros, int count, long atMicros) {
        synchronized (endToEndMicros) {
            for (int i = 0; i < count; i++) {
                endToEndMicros.recordValue(Math.max(0, latenciesMicros[i]));
            }
        }
        deliveredEvents.add(count);
        lastDeliveredAtMicros.accumulateAndGet(atMicros, Math::max);
    }

    /** Records that all its calls are made. */
    void recordSent(long events, long nowNanos) {
        sentEvents = events;
        endedNanos = Math.min(nowNanos, time.endNanos());
    }

    PublishMeter meter() {
        return meter;
    }

    /** Returns the specification of the phase. */
    public PhaseSpec spec() {
        return spec;
    }

    /** Returns the rate of an open loop; 0 for a closed loop. */
    public long eventsPerSecond() {
        return eventsPerSecond;
    }

    /** Returns the start time on the monotonic clock. */
    public long startNanos() {
        return time.startNanos();
    }

    /** Returns the end time, as planned or earlier after a stop signal. */
    public long endedNanos() {
        return endedNanos;
    }

    ClockAnchor anchor() {
        return time.anchor();
    }

    /** Returns the start time in epoch microseconds. */
    public long startedAtMicros() {
        return time.anchor().epochMicrosAt(time.startNanos());
    }

    public long sentEvents() {
        return sentEvents;
    }

    public long missedEvents() {
        return missedEvents.sum();
    }

    /** Returns the deliveries to all consumers, excluding duplicates. */
    public long deliveredEvents() {
        return deliveredEvents.sum();
    }

    /** Returns the time of the last delivery in epoch microseconds; 0 if there was none. */
    public long lastDeliveredAtMicros() {
        return lastDeliveredAtMicros.get();
    }

    /** Returns the measurement so far. */
    public PhaseMeasurement measurement() {
        return meter.measurement(sentEvents, time.anchor());
    }

    /** Returns the latencies from the intended send to the consumer, one value per delivery. */
    public Histogram endToEndMicros() {
        synchronized (endToEndMicros) {
            return endToEndMicros.copy();
        }
    }
}
