package io.eventsql.runner.drivers.pgmq;

import io.eventsql.Event;
import io.eventsql.runner.drivers.pgmq.PgmqStatements.Page;
import java.sql.SQLException;
import java.util.List;
import java.util.function.Consumer;

/** The consumer of a queue, with its own thread. Deletes each page after its delivery. */
final class PgmqSubscription implements AutoCloseable {
    private final PgmqStatements statements;
    private final PgmqSettings settings;
    private final String queue;
    private final Consumer<List<Event>> listener;
    private final Consumer<Throwable> onFailure;
    private final Thread thread;
    private volatile boolean stopped;

    /** Starts consuming. */
    PgmqSubscription(
            PgmqStatements statements,
            PgmqSettings settings,
            String queue,
            Consumer<List<Event>> listener,
            Consumer<Throwable> onFailure) {
        this.statements = statements;
        this.settings = settings;
        this.queue = queue;
        this.listener = listener;
        this.onFailure = onFailure;
        this.thread = Thread.ofPlatform().name("pgmq-" + queue).start(this::consume);
    }

    private void consume() {
        try {
            while (!stopped) {
                Page page = statements.read(queue, settings.pageEvents(), settings.pollMs());
                if (!page.events().isEmpty()) {
                    listener.accept(page.events());
                    statements.delete(queue, page.ids());
                }
            }
        } catch (SQLException | RuntimeException e) {
            onFailure.accept(e);
        }
    }

    @Override
    public void close() {
        stopped = true;
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
