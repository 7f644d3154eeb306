package io.eventsql.internal.wake;

import io.eventsql.internal.shard.Shard;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Listens for one shard's wake-up signals on a connection of its own, which it replaces when it breaks. */
final class Listener {
    private static final Logger LOG = LoggerFactory.getLogger(Listener.class);
    private static final long RECONNECT_AFTER_MS = 1_000;
    /** Short, because it is also how long closing takes; waiting sends nothing. */
    private static final int WAIT_MS = 100;
    /** A quiet connection is checked this often: it may be dead. */
    private static final long CHECK_EVERY_NANOS = TimeUnit.SECONDS.toNanos(30);

    private final Shard shard;
    private final String self;
    private final int networkTimeoutSeconds;
    private final List<WakeUpTarget> targets;
    private @Nullable Thread thread;
    private boolean deafnessTold;
    private volatile boolean closed;

    /**
     * @param self the beginning of this process's own signals, which it knows already
     * @param targets told what is new; may grow
     */
    Listener(Shard shard, String self, Duration networkTimeout, List<WakeUpTarget> targets) {
        this.shard = shard;
        this.self = self;
        this.networkTimeoutSeconds = (int) Math.max(1, networkTimeout.toSeconds());
        this.targets = targets;
    }

    synchronized void start() {
        if (thread == null && !closed) {
            thread = new Thread(this::run, "eventsql-listen-" + shard.name());
            thread.setDaemon(true);
            thread.start();
        }
    }

    private void run() {
        try {
            while (!closed) {
                listen();
                if (!closed) {
                    TimeUnit.MILLISECONDS.sleep(RECONNECT_AFTER_MS);
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void listen() {
        try (Connection connection = shard.require().borrow()) {
            try {
                listen(connection);
            } finally {
                // Also on a broken connection: its pool learns only from a failing statement that it is broken.
                shard.tables().notifications().unlisten(connection);
            }
        } catch (SQLException | RuntimeException e) {
            LOG.debug("Not listening on {} for the moment; consumers poll", shard, e);
        }
    }

    private void listen(Connection connection) throws SQLException {
        shard.tables().notifications().listen(connection);
        targets.forEach(WakeUpTarget::wakeAll); // what came before is not signalled
        String echo = self + " " + System.nanoTime();
        shard.require().call(other -> {
            shard.tables().notifications().send(other, echo);
            return echo;
        });
        boolean heard = false;
        long checkedAt = System.nanoTime();
        while (!closed) {
            for (String payload : shard.tables().notifications().await(connection, WAIT_MS)) {
                heard |= payload.equals(echo);
                Signal.dispatch(payload, self, targets);
            }
            if (System.nanoTime() - checkedAt > CHECK_EVERY_NANOS && !heard && !deafnessTold) {
                deafnessTold = true;
                LOG.warn(
                        "No signal comes through {} (a connection pooler in transaction mode?): consumers find the events"
                                + " of other processes only by polling, every settings.pollInterval",
                        shard);
            }
            if (System.nanoTime() - checkedAt > CHECK_EVERY_NANOS) {
                if (!connection.isValid(networkTimeoutSeconds)) {
                    throw new SQLException("the listening connection is dead");
                }
                checkedAt = System.nanoTime();
            }
        }
    }

    void close() throws InterruptedException {
        closed = true;
        Thread running;
        synchronized (this) {
            running = thread;
        }
        if (running != null) {
            running.join(TimeUnit.SECONDS.toMillis(1));
            running.interrupt();
        }
    }
}
