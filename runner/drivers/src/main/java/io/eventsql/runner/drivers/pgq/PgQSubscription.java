package io.eventsql.runner.drivers.pgq;

import io.eventsql.Event;
import io.eventsql.runner.driver.DeliveryListener;
import java.sql.SQLException;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** A consumer with its own thread. Finishes each batch after its delivery. */
final class PgQSubscription implements AutoCloseable {
    private static final int POLL_MIN_MS = 5;
    private static final int POLLS_PER_TICK = 4;

    /**
     * A consumer of a queue.
     *
     * @param queue the queue
     * @param consumer the registered consumer
     * @param tickMs the tick interval in milliseconds
     */
    record QueueConsumer(String queue, String consumer, int tickMs) {}

    private final PgQStatements statements;
    private final QueueConsumer queueConsumer;
    private final DeliveryListener listener;
    private final CountDownLatch closing = new CountDownLatch(1);
    private final Thread thread;

    /** Starts consuming. */
    PgQSubscription(PgQStatements statements, QueueConsumer queueConsumer, DeliveryListener listener) {
        this.statements = statements;
        this.queueConsumer = queueConsumer;
        this.listener = listener;
        this.thread = Thread.ofPlatform().name("pgq-" + queueConsumer.queue).start(this::consume);
    }

    private void consume() {
        long pauseMs = Math.max(POLL_MIN_MS, queueConsumer.tickMs / POLLS_PER_TICK);
        try {
            boolean more = true;
            while (!closing.await(more ? 0 : pauseMs, TimeUnit.MILLISECONDS)) {
                more = deliverNextBatch();
            }
        } catch (SQLException | RuntimeException e) {
            listener.failed(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private boolean deliverNextBatch() throws SQLException {
        OptionalLong batch = statements.nextBatch(queueConsumer.queue, queueConsumer.consumer);
        if (batch.isEmpty()) {
            return false;
        }
        List<Event> events = statements.events(batch.getAsLong());
        if (!events.isEmpty()) {
            listener.delivered(events);
        }
        statements.finish(batch.getAsLong());
        return true;
    }

    @Override
    public void close() {
        closing.countDown();
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
