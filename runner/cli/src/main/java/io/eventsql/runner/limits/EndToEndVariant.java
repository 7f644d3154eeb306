package io.eventsql.runner.limits;

import io.eventsql.ConsumerSpec;
import io.eventsql.StartPosition;
import io.eventsql.Subscription;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/** Publishes as fast as possible while a consumer handles the events; its rate is that of the consumer. */
final class EndToEndVariant implements Variant {
    private static final long POLL_NANOS = Duration.ofMillis(5).toNanos();
    private static final long WAIT_MAX_NANOS = Duration.ofSeconds(60).toNanos();

    private final String name;
    private final LimitsContext context;
    private final String stream;
    private final PublishVariant publish;
    private int consumers;

    EndToEndVariant(String name, LimitsContext context, String stream, PublishVariant publish) {
        this.name = name;
        this.context = context;
        this.stream = stream;
        this.publish = publish;
    }

    @Override
    public String name() {
        return name;
    }

    /** The consumer is new in each interval and starts at the head, so that it handles exactly what is published. */
    @Override
    public MeasuredInterval run(Duration time) {
        ConsumerSpec consumer =
                ConsumerSpec.of(stream, "limits_" + consumers++).withStartPosition(StartPosition.LATEST);
        AtomicLong handled = new AtomicLong();
        AtomicLong lastNanos = new AtomicLong();
        try (Subscription subscription = context.eventSql().subscribeBatch(consumer, events -> {
            handled.addAndGet(events.size());
            lastNanos.set(context.clock().nanos());
        })) {
            long start = context.clock().nanos();
            MeasuredInterval published = publish.run(time);
            long deadline = context.clock().nanos() + WAIT_MAX_NANOS;
            while (handled.get() < published.events() && !context.stop().isRaised()) {
                if (context.clock().nanos() > deadline) {
                    throw new IllegalStateException(subscription.spec().name() + " handled " + handled + " of "
                            + published.events() + " events of " + stream);
                }
                context.clock().parkNanos(POLL_NANOS);
            }
            return new MeasuredInterval(published.events(), published.calls(), lastNanos.get() - start);
        }
    }
}
