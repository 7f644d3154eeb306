package io.eventsql.runner.limits;

import io.eventsql.ConsumerSpec;
import io.eventsql.StartPosition;
import io.eventsql.Subscription;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/** Publishes as fast as possible while a consumer handles the events; the rate is that of the consumer. Runs once. */
final class EndToEndInterval {
    private static final long POLL_NANOS = Duration.ofMillis(5).toNanos();
    private static final long WAIT_MAX_NANOS = Duration.ofSeconds(60).toNanos();

    private final LimitsContext context;
    private final String stream;
    private final PublishVariant publish;

    EndToEndInterval(LimitsContext context, String stream, PublishVariant publish) {
        this.context = context;
        this.stream = stream;
        this.publish = publish;
    }

    /** The consumer starts at the head, so that it handles exactly what is published, and is deleted at the end. */
    MeasuredInterval run(Duration time) {
        ConsumerSpec consumer = ConsumerSpec.of(stream, "limits").withStartPosition(StartPosition.LATEST);
        AtomicLong handled = new AtomicLong();
        AtomicLong lastNanos = new AtomicLong();
        MeasuredInterval measured;
        Subscription subscription = context.eventSql().subscribeBatch(consumer, events -> {
            handled.addAndGet(events.size());
            lastNanos.set(context.clock().nanos());
        });
        try {
            long start = context.clock().nanos();
            MeasuredInterval published = publish.run(time);
            long deadline = context.clock().nanos() + WAIT_MAX_NANOS;
            while (handled.get() < published.events() && !context.stop().isRaised()) {
                if (context.clock().nanos() > deadline) {
                    throw new IllegalStateException("The consumer of " + stream + " handled " + handled + " of "
                            + published.events() + " events");
                }
                context.clock().parkNanos(POLL_NANOS);
            }
            measured = new MeasuredInterval(published.events(), published.calls(), lastNanos.get() - start);
        } finally {
            subscription.close();
        }
        context.eventSql().consumer(stream, consumer.name()).delete();
        return measured;
    }
}
