package io.eventsql.runner.limits;

import io.eventsql.ConsumerSpec;
import io.eventsql.StartPosition;
import io.eventsql.Subscription;
import io.eventsql.runner.load.Callers;
import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.load.LoadContext;
import io.eventsql.runner.load.LoadGenerator;
import io.eventsql.runner.load.LoadPhase;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.PublishMeter;
import java.time.Duration;

/** Publishes with the library, as fast as its callers can. */
final class PublishVariant {
    private final String name;
    private final LoadGenerator callers;
    private final LoadContext load;

    private PublishVariant(String name, LoadGenerator callers, LoadContext load) {
        this.name = name;
        this.callers = callers;
        this.load = load;
    }

    /**
     * Creates callers that publish single events without waiting for answers, except while the library's buffer is
     * full.
     */
    static PublishVariant async(LoadContext load, int callers) {
        return new PublishVariant("publishAsync, " + callers + " callers", Callers.notWaiting(load, callers), load);
    }

    /** Creates callers that wait for each answer. */
    static PublishVariant waiting(LoadContext load, int callers) {
        String call = load.eventsPerCall() == 1 ? "publish" : "publishAll of " + load.eventsPerCall();
        return new PublishVariant(call + ", " + callers + " callers", Callers.waiting(load, callers), load);
    }

    /** Creates callers that wait for each answer, with a custom name. */
    static PublishVariant named(String name, LoadContext load, int callers) {
        return new PublishVariant(name, Callers.waiting(load, callers), load);
    }

    String name() {
        return name;
    }

    /** Returns the variant that only publishes. */
    Variant variant() {
        return new Variant(name, this::run);
    }

    /**
     * Returns the variant whose rate is that of a consumer, which handles and checks the events. It starts at the head of
     * the stream, so that it handles exactly what is published, and is deleted at the end.
     */
    Variant endToEnd(LimitsContext context, String stream) {
        return new Variant(name + ", end to end", time -> {
            ConsumerSpec consumer = ConsumerSpec.of(stream, "limits").withStartPosition(StartPosition.LATEST);
            ConsumedEvents consumed = new ConsumedEvents(context);
            MeasuredInterval measured;
            Subscription subscription = context.eventSql().subscribeBatch(consumer, consumed::accept);
            try {
                measured = consumed.during(() -> run(time));
            } finally {
                subscription.close();
            }
            context.eventSql().consumer(stream, consumer.name()).delete();
            return measured;
        });
    }

    /** Publishes for a duration. */
    MeasuredInterval run(Duration time) {
        ClockAnchor anchor = ClockAnchor.now(load.clock());
        return run(LoadPhase.ofNanos(false, anchor, anchor.nanos(), time.toNanos()));
    }

    /** Publishes a number of events. */
    MeasuredInterval publish(long events) {
        ClockAnchor anchor = ClockAnchor.now(load.clock());
        return run(LoadPhase.ofEvents(false, anchor, anchor.nanos(), events));
    }

    private MeasuredInterval run(LoadPhase phase) {
        PublishMeter meter = new PublishMeter();
        long sent = callers.run(phase, meter);
        PhaseMeasurement measured = meter.measurement(sent, phase.anchor());
        // A stopped run leaves calls unanswered, and its measurement is discarded.
        if (measured.failedEvents() > 0 && !load.stop().isRaised()) {
            throw new IllegalStateException(measured.failedEvents() + " events of " + name + " failed, the first with "
                    + measured.errors().getFirst());
        }
        Long first = measured.firstIntendedAtMicros();
        Long last = measured.lastAcknowledgedAtMicros();
        long nanos = first == null || last == null ? 0 : (last - first) * 1_000;
        long published = measured.publishedEvents();
        return new MeasuredInterval(published, Math.ceilDiv(published, load.eventsPerCall()), nanos);
    }
}
