package io.eventsql.runner.limits;

import io.eventsql.ConsumerSpec;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Reads a partition from its beginning with a new consumer and a batch handler that does nothing, again and again until the
 * time is up. Measures from the first call of the handler to the last one.
 */
final class ConsumerReadVariant {
    private static final Duration POLL = Duration.ofMillis(1);
    private static final Duration NO_PROGRESS = Duration.ofSeconds(60);

    private final LimitsContext context;
    private final String stream;
    private final int events;
    private final int pageEvents;
    private int consumers;

    /**
     * @param events the number of events in the only partition
     * @param pageEvents the maximum number of events of a call
     */
    ConsumerReadVariant(LimitsContext context, String stream, int events, int pageEvents) {
        this.context = context;
        this.stream = stream;
        this.events = events;
        this.pageEvents = pageEvents;
    }

    Variant variant() {
        return new Variant("consumer, pages of " + pageEvents, this::run);
    }

    private MeasuredInterval run(Duration time) throws SQLException {
        long endNanos = context.clock().nanos() + time.toNanos();
        long read = 0;
        long calls = 0;
        long nanos = 0;
        do {
            Pass pass = new Pass();
            String consumer = "limits_" + pageEvents + "_" + consumers++;
            ConsumerSpec spec = ConsumerSpec.of(stream, consumer).withPageEvents(pageEvents);
            Subscription subscription = context.eventSql().subscribeBatch(spec, pass::handle);
            try {
                pass.await();
            } finally {
                subscription.close();
            }
            context.eventSql().consumer(stream, consumer).delete();
            read += pass.handled.get();
            calls += pass.calls;
            nanos += pass.lastNanos - pass.firstNanos;
        } while (context.clock().nanos() < endNanos && !context.stop().isRaised());
        return new MeasuredInterval(read, calls, nanos);
    }

    /** One consumer's way through the partition. Written by its handler, of which one call follows the other. */
    private final class Pass {
        /** Written after the fields that follow, and read before them. */
        private final AtomicLong handled = new AtomicLong();

        private long calls;
        private long firstNanos;
        private long lastNanos;
        private volatile boolean isWrong;

        void handle(List<StoredEvent> page) {
            long next = handled.get();
            if (calls == 0) {
                firstNanos = context.clock().nanos();
            }
            if (page.getFirst().offset() != next || page.getLast().offset() != next + page.size() - 1) {
                isWrong = true;
            }
            calls++;
            lastNanos = context.clock().nanos();
            handled.set(next + page.size());
        }

        /**
         * @throws RunStoppedException after a stop signal
         * @throws IllegalStateException if an event is not handled once and in order
         */
        void await() throws SQLException {
            context.await(() -> isWrong ? events : handled.get(), events, NO_PROGRESS, POLL);
            if (isWrong || handled.get() != events) {
                throw new IllegalStateException("Pages of " + pageEvents + ": expected offsets 0 to " + (events - 1)
                        + " in order, but handled " + handled.get());
            }
        }
    }
}
