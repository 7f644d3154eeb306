package io.eventsql.runner.drivers.pgq;

import java.sql.SQLException;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/** Ends the batches of queues at a fixed interval, like {@code pgqd}. */
final class PgQTicker implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(PgQTicker.class.getName());

    private final PgQStatements statements;
    private final List<String> queues = new CopyOnWriteArrayList<>();
    private final ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor(
            Thread.ofPlatform().daemon().name("pgq-ticker").factory());

    PgQTicker(PgQStatements statements, int everyMs) {
        this.statements = statements;
        var unused = timer.scheduleAtFixedRate(this::tick, everyMs, everyMs, TimeUnit.MILLISECONDS);
    }

    void add(String queue) {
        queues.add(queue);
    }

    /** Ticks all queues. The next tick compensates for a failed one. */
    private void tick() {
        for (String queue : queues) {
            try {
                statements.tick(queue);
            } catch (SQLException | RuntimeException e) {
                LOG.log(
                        System.Logger.Level.WARNING,
                        "Tick of queue " + queue + " failed; retrying with the next tick: " + e.getMessage());
            }
        }
    }

    @Override
    public void close() {
        timer.close();
    }
}
