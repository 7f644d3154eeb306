package io.eventsql.internal.relay;

import io.eventsql.internal.pool.PoolCheck;
import io.eventsql.internal.pool.PoolSize;
import io.eventsql.internal.sql.BorrowedConnection;
import io.eventsql.internal.sql.Notifications;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.thread.FailureSeries;
import io.eventsql.internal.thread.ServiceThread;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.OptionalInt;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Listens, on a connection of its own, for signals that other processes have published, or scheduled an event that is due
 * soon, while this process relays. Without signals their events wait for the next poll: while the connection is broken,
 * through a connection pooler, and with a pool too small to spare a connection. Used by the relay's thread.
 */
final class RelayListener {
    private static final Logger LOG = LoggerFactory.getLogger(RelayListener.class);
    /** Short, because it bounds the time to close; waiting sends no messages. */
    private static final int WAIT_MS = 100;

    private static final long RECONNECT_PAUSE_MS = 1_000;
    private static final long CHECK_INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(30);
    private static final long END_NANOS_MAX = TimeUnit.SECONDS.toNanos(1);
    private static final int CHECK_TIMEOUT_SECONDS = 5;

    private final OutboxDatabase outbox;
    private final PollSchedule schedule;
    private final DueEvents due;
    private volatile @Nullable Listening current;
    private volatile boolean reported;

    RelayListener(OutboxDatabase outbox, PollSchedule schedule, DueEvents due) {
        this.outbox = outbox;
        this.schedule = schedule;
        this.due = due;
    }

    /** Starts to listen, unless it already does. */
    void begin() throws SQLException {
        Listening running = current;
        if (running != null && !running.thread.isClosing()) {
            return;
        }
        OptionalInt poolSize = PoolSize.max(outbox.dataSource());
        if (poolSize.isPresent() && poolSize.getAsInt() < PoolCheck.RELAY_LISTENS_FROM) {
            report("its pool has only " + poolSize.getAsInt() + " connections");
            return;
        }
        Listening started = new Listening();
        current = started;
        started.thread.start();
    }

    /** Lets the thread end. */
    void end() {
        Listening running = current;
        if (running != null) {
            running.thread.close();
        }
    }

    /** Waits briefly for the thread to end, because the user may close the pool next. */
    void awaitEnd() throws InterruptedException {
        Listening running = current;
        if (running != null && !running.thread.join(END_NANOS_MAX)) {
            running.thread.closeNow();
        }
    }

    private void report(String reason) {
        if (!reported) {
            reported = true;
            LOG.info(
                    "The relay does not listen to outbox {}, because {}; it finds the events of other processes by"
                            + " polling (settings.outboxPollInterval)",
                    outbox,
                    reason);
        }
    }

    /** Listening during one lease. */
    private final class Listening {
        private final FailureSeries failures = new FailureSeries();
        private final ServiceThread thread = new ServiceThread("eventsql-relay-listen-" + outbox, this::run);

        private void run() throws InterruptedException {
            listen();
            if (!thread.isClosing()) {
                TimeUnit.MILLISECONDS.sleep(RECONNECT_PAUSE_MS);
            }
        }

        private void listen() {
            try (BorrowedConnection borrowed = outbox.database().borrow()) {
                Connection connection = borrowed.get();
                if (Notifications.isThroughPooler(connection)) {
                    report("its connections go through a pooler, where LISTEN would remain on a shared one");
                    thread.close();
                    return;
                }
                try {
                    listen(connection);
                } finally {
                    // On a broken connection, too: the pool detects it only by a failing statement.
                    outbox.tables().notifications().unlisten(connection);
                }
            } catch (SQLException | RuntimeException e) {
                onFailure(e);
            }
        }

        /** An outage is logged once, not each second, and again only for another reason. */
        private void onFailure(Exception e) {
            String reason = SqlErrors.message(e);
            if (!thread.isClosing() && failures.add(reason).isNew()) {
                LOG.warn(
                        "Listening on outbox {} failed; reconnecting every {} ms, the relay polls until then: {}",
                        outbox,
                        RECONNECT_PAUSE_MS,
                        reason);
            } else {
                LOG.debug("Listening on outbox {} failed", outbox, e);
            }
        }

        private void listen(Connection connection) throws SQLException {
            outbox.tables().notifications().listen(connection);
            int ended = failures.end();
            if (ended > 0) {
                LOG.info("Listening on outbox {} works again after {} failed attempts", outbox, ended);
                schedule.published(); // signals may have been missed
            }
            long checkedAt = System.nanoTime();
            while (!thread.isClosing()) {
                for (String payload : outbox.tables().notifications().await(connection, WAIT_MS)) {
                    received(payload);
                }
                if (System.nanoTime() - checkedAt > CHECK_INTERVAL_NANOS) {
                    if (!connection.isValid(CHECK_TIMEOUT_SECONDS)) {
                        throw new SQLException("the listening connection is dead");
                    }
                    checkedAt = System.nanoTime();
                }
            }
        }

        /** A number is that of the milliseconds until a scheduled event is due. */
        private void received(String payload) {
            try {
                long nanos = TimeUnit.MILLISECONDS.toNanos(Long.parseLong(payload));
                due.expect(nanos);
                schedule.wakeIn(nanos);
            } catch (NumberFormatException e) {
                schedule.published();
            }
        }
    }
}
