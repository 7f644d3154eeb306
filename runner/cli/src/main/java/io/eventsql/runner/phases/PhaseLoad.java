package io.eventsql.runner.phases;

import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.load.LoadListener;
import io.eventsql.runner.load.LoadPhase;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.PublishMeter;
import io.eventsql.runner.series.RunSeries;
import io.eventsql.runner.spec.PhaseSpec;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;

/** One phase while it runs, and what becomes of its events. Thread-safe. */
public final class PhaseLoad implements LoadListener {
    private static final int SIGNIFICANT_DIGITS = 3;

    private final PhaseSpec spec;
    private final long eventsPerSecond;
    private final LoadPhase time;
    private final RunSeries series;
    private final PublishMeter meter = new PublishMeter();
    private final Histogram endToEndMicros = new ConcurrentHistogram(SIGNIFICANT_DIGITS);
    private final LongAdder missedEvents = new LongAdder();
    private final LongAdder deliveredEvents = new LongAdder();
    private final AtomicLong lastDeliveredAtMicros = new AtomicLong();
    private volatile long sentEvents;
    private volatile long endedNanos;

    /**
     * @param eventsPerSecond of an open loop; 0: a closed one
     * @param time when it is
     * @param series counts it second by second
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
        series.recordFailed(intendedNanos, failedNanos, events, failure);
        meter.failed(intendedNanos, failedNanos, events, failure);
    }

    @Override
    public long answeredEvents() {
        return meter.answeredEvents();
    }

    /** One of its events has reached a consumer. */
    void recordDelivered(long latencyMicros, long atMicros) {
        endToEndMicros.recordValue(Math.max(0, latencyMicros));
        deliveredEvents.increment();
        lastDeliveredAtMicros.accumulateAndGet(atMicros, Math::max);
    }

    /** All its calls are made. */
    void recordSent(long events, long nowNanos) {
        sentEvents = events;
        endedNanos = Math.min(nowNanos, time.endNanos());
    }

    PublishMeter meter() {
        return meter;
    }

    /** What was asked. */
    public PhaseSpec spec() {
        return spec;
    }

    /** Of an open loop; 0: a closed one. */
    public long eventsPerSecond() {
        return eventsPerSecond;
    }

    /** When it started, on the monotonic clock. */
    public long startNanos() {
        return time.startNanos();
    }

    /** When it ended: as planned, or earlier after a stop signal. */
    public long endedNanos() {
        return endedNanos;
    }

    ClockAnchor anchor() {
        return time.anchor();
    }

    /** When it started, epoch microseconds. */
    public long startedAtMicros() {
        return time.anchor().epochMicrosAt(time.startNanos());
    }

    public long sentEvents() {
        return sentEvents;
    }

    public long missedEvents() {
        return missedEvents.sum();
    }

    /** DeliveryListener to all consumers together, without repeated ones. */
    public long deliveredEvents() {
        return deliveredEvents.sum();
    }

    /** When the last was delivered, epoch microseconds; 0 where none was. */
    public long lastDeliveredAtMicros() {
        return lastDeliveredAtMicros.get();
    }

    /** What became of its events so far. */
    public PhaseMeasurement measurement() {
        return meter.measurement(sentEvents, time.anchor());
    }

    /** Latency from the intended send to the consumer, one value for each delivery. */
    public Histogram endToEndMicros() {
        return endToEndMicros.copy();
    }
}
