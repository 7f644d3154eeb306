package io.eventsql.runner.limits;

import io.eventsql.runner.load.Callers;
import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.load.LoadGenerator;
import io.eventsql.runner.load.LoadParts;
import io.eventsql.runner.load.LoadPhase;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.PublishMeter;
import java.time.Duration;

/** Appends through the library, as fast as its callers go. */
final class PublishContender implements Contender {
    private final String name;
    private final LoadGenerator callers;
    private final LoadParts parts;

    private PublishContender(String name, LoadGenerator callers, LoadParts parts) {
        this.name = name;
        this.callers = callers;
        this.parts = parts;
    }

    /** Callers that publish events one by one and do not wait for answers, except while the library's buffer is full. */
    static PublishContender async(LoadParts parts, int callers) {
        return new PublishContender("publishAsync, " + callers + " callers", Callers.notWaiting(parts, callers), parts);
    }

    /** Callers that wait for each answer. */
    static PublishContender waiting(LoadParts parts, int callers) {
        String call = parts.eventsPerCall() == 1 ? "publish" : "publishAll of " + parts.eventsPerCall();
        return new PublishContender(call + ", " + callers + " callers", Callers.waiting(parts, callers), parts);
    }

    /** Callers that wait for each answer, of a way to publish that has a name of its own. */
    static PublishContender named(String name, LoadParts parts, int callers) {
        return new PublishContender(name, Callers.waiting(parts, callers), parts);
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Stretch run(Duration time) {
        ClockAnchor anchor = ClockAnchor.now(parts.clock());
        return run(LoadPhase.ofNanos(false, anchor, anchor.nanos(), time.toNanos()));
    }

    /** Publishes so many events. */
    Stretch publish(long events) {
        ClockAnchor anchor = ClockAnchor.now(parts.clock());
        return run(LoadPhase.ofEvents(false, anchor, anchor.nanos(), events));
    }

    private Stretch run(LoadPhase phase) {
        PublishMeter meter = new PublishMeter();
        long sent = callers.run(phase, meter);
        PhaseMeasurement measured = meter.measurement(sent, phase.anchor());
        // A stopped run leaves calls without an answer; nobody uses what it measured.
        if (measured.failedEvents() > 0 && !parts.stop().isRaised()) {
            throw new IllegalStateException(measured.failedEvents() + " events of " + name + " failed, the first with "
                    + measured.errors().getFirst());
        }
        Long first = measured.firstIntendedAtMicros();
        Long last = measured.lastAcknowledgedAtMicros();
        long nanos = first == null || last == null ? 0 : (last - first) * 1_000;
        long published = measured.publishedEvents();
        return new Stretch(published, Math.ceilDiv(published, parts.eventsPerCall()), nanos);
    }
}
