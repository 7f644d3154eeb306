package io.eventsql.runner.limits;

import io.eventsql.Event;
import io.eventsql.Outbox;
import io.eventsql.runner.driver.PublishTarget;
import io.eventsql.runner.load.OutboxTransaction;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import javax.sql.DataSource;

/** Publishes each call through the outbox in its own database transaction. Thread-safe. */
final class OutboxTarget implements PublishTarget, AutoCloseable {
    /** Low, because the pool is shared with the library. */
    private static final int TRANSACTIONS_AT_A_TIME = 3;

    private final DataSource dataSource;
    private final Outbox outbox;
    private final String stream;
    private final ExecutorService threads = Executors.newFixedThreadPool(TRANSACTIONS_AT_A_TIME);

    OutboxTarget(DataSource dataSource, Outbox outbox, String stream) {
        this.dataSource = dataSource;
        this.outbox = outbox;
        this.stream = stream;
    }

    @Override
    public void publish(List<Event> events) {
        OutboxTransaction.publish(dataSource, outbox, stream, events);
    }

    @Override
    public CompletionStage<?> publishAsync(List<Event> events) {
        return CompletableFuture.runAsync(() -> publish(events), threads);
    }

    @Override
    public void close() {
        threads.close();
    }
}
