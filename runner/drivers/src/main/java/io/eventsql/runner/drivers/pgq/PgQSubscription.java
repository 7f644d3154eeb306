package io.eventsql.runner.drivers.pgq;

import io.eventsql.Event;
import io.eventsql.runner.driver.Deliveries;
import java.sql.SQLException;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** A consumer with a thread of its own. Each batch is finished when it was handed on. */
final class PgQSubscription implements AutoCloseable {
    private static final int SHORTEST_LOOK_MS = 5;
    private static final int LOOKS_PER_TICK = 4;

    /**
     * Who reads.
     *
     * @param queue the queue
     * @param consumer the consumer, which is registered
     * @param tickMs how often batches end
     */
    record Reader(String queue, String consumer, int tickMs) {}

    private final PgQStatements statements;
    private final Reader reader;
    private final Deliveries deliveries;
    private final CountDownLatch closing = new CountDownLatch(1);
    private final Thread thread;

    /** Starts it. */
    PgQSubscription(PgQStatements statements, Reader reader, Deliveries deliveries) {
        this.statements = statements;
        this.reader = reader;
        this.deliveries = deliveries;
        this.thread = Thread.ofPlatform().name("pgq-" + reader.queue).start(this::consume);
    }

    private void consume() {
        long pauseMs = Math.max(SHORTEST_LOOK_MS, reader.tickMs / LOOKS_PER_TICK);
        try {
            boolean more = true;
            while (!closing.await(more ? 0 : pauseMs, TimeUnit.MILLISECONDS)) {
                more = handOnBatch();
            }
        } catch (SQLException | RuntimeException e) {
            deliveries.failed(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private boolean handOnBatch() throws SQLException {
        OptionalLong batch = statements.nextBatch(reader.queue, reader.consumer);
        if (batch.isEmpty()) {
            return false;
        }
        List<Event> events = statements.events(batch.getAsLong());
        if (!events.isEmpty()) {
            deliveries.delivered(events);
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
