package io.eventsql.internal.relay;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * While this process relays: hears, on a connection of its own, that other processes have published. Without it, for
 * instance through PgBouncer in transaction mode, their events wait for the poll.
 */
final class RelayListener {
    private static final Logger LOG = LoggerFactory.getLogger(RelayListener.class);
    /** Short, because it is also how long closing takes; waiting sends nothing. */
    private static final int WAIT_MS = 100;

    private static final long RECONNECT_AFTER_MS = 1_000;
    private static final long CHECK_EVERY_NANOS = TimeUnit.SECONDS.toNanos(30);
    private static final int CHECK_TIMEOUT_SECONDS = 5;

    private final OutboxDatabase outbox;
    private final PollSchedule looks;
    private @Nullable Thread thread;
    private volatile boolean listening;

    RelayListener(OutboxDatabase outbox, PollSchedule looks) {
        this.outbox = outbox;
        this.looks = looks;
    }

    /** Begins, unless it has begun. */
    void begin() {
        if (thread == null || !thread.isAlive()) {
            listening = true;
            thread = new Thread(this::run, "eventsql-relay-listen-" + outbox);
            thread.setDaemon(true);
            thread.start();
        }
    }

    /** Ends, and waits for it a moment. */
    void end() throws InterruptedException {
        listening = false;
        Thread running = thread;
        if (running != null) {
            running.join(TimeUnit.SECONDS.toMillis(1));
            running.interrupt();
            thread = null;
        }
    }

    private void run() {
        try {
            while (listening) {
                listen();
                if (listening) {
                    TimeUnit.MILLISECONDS.sleep(RECONNECT_AFTER_MS);
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void listen() {
        try (Connection connection = outbox.database().borrow()) {
            try {
                listen(connection);
            } finally {
                // Also on a broken connection: its pool learns only from a failing statement that it is broken.
                outbox.tables().notifications().unlisten(connection);
            }
        } catch (SQLException | RuntimeException e) {
            LOG.debug("Not listening on {} for the moment; the relay polls", outbox, e);
        }
    }

    private void listen(Connection connection) throws SQLException {
        outbox.tables().notifications().listen(connection);
        long checkedAt = System.nanoTime();
        while (listening) {
            if (!outbox.tables().notifications().await(connection, WAIT_MS).isEmpty()) {
                looks.published();
            }
            if (System.nanoTime() - checkedAt > CHECK_EVERY_NANOS) {
                if (!connection.isValid(CHECK_TIMEOUT_SECONDS)) {
                    throw new SQLException("the listening connection is dead");
                }
                checkedAt = System.nanoTime();
            }
        }
    }
}
