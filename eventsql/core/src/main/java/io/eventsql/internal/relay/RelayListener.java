package io.eventsql.internal.relay;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Listens, on a connection of its own, for signals that other processes have published, while this process relays. If
 * signals do not get through, as with PgBouncer in transaction mode, their events wait for the next poll.
 */
final class RelayListener {
    private static final Logger LOG = LoggerFactory.getLogger(RelayListener.class);
    /** Short, because it bounds the time to close; waiting sends no messages. */
    private static final int WAIT_MS = 100;

    private static final long RECONNECT_PAUSE_MS = 1_000;
    private static final long CHECK_INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(30);
    private static final int CHECK_TIMEOUT_SECONDS = 5;

    private final OutboxDatabase outbox;
    private final PollSchedule schedule;
    private @Nullable Thread thread;
    private volatile boolean listening;

    RelayListener(OutboxDatabase outbox, PollSchedule schedule) {
        this.outbox = outbox;
        this.schedule = schedule;
    }

    /** Starts to listen, unless it already does. */
    void begin() {
        if (thread == null || !thread.isAlive()) {
            listening = true;
            thread = new Thread(this::run, "eventsql-relay-listen-" + outbox);
            thread.setDaemon(true);
            thread.start();
        }
    }

    /** Stops listening and waits briefly for the thread to end. */
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
                    TimeUnit.MILLISECONDS.sleep(RECONNECT_PAUSE_MS);
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
                // On a broken connection, too: the pool detects it only by a failing statement.
                outbox.tables().notifications().unlisten(connection);
            }
        } catch (SQLException | RuntimeException e) {
            LOG.debug(
                    "Listening on outbox {} failed; reconnecting in {} ms, the relay polls until then",
                    outbox,
                    RECONNECT_PAUSE_MS,
                    e);
        }
    }

    private void listen(Connection connection) throws SQLException {
        outbox.tables().notifications().listen(connection);
        long checkedAt = System.nanoTime();
        while (listening) {
            if (!outbox.tables().notifications().await(connection, WAIT_MS).isEmpty()) {
                schedule.published();
            }
            if (System.nanoTime() - checkedAt > CHECK_INTERVAL_NANOS) {
                if (!connection.isValid(CHECK_TIMEOUT_SECONDS)) {
                    throw new SQLException("the listening connection is dead");
                }
                checkedAt = System.nanoTime();
            }
        }
    }
}
