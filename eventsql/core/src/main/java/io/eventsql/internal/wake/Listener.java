package io.eventsql.internal.wake;

import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.BorrowedConnection;
import io.eventsql.internal.sql.Notifications;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.thread.FailureSeries;
import io.eventsql.internal.thread.ServiceThread;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Listens for one shard's wake-up signals on a connection of its own; reconnects if it breaks. Not through a connection
 * pooler, where a LISTEN could remain on a connection that other clients use next: then consumers poll.
 */
final class Listener {
    private static final Logger LOG = LoggerFactory.getLogger(Listener.class);
    private static final long RECONNECT_PAUSE_MS = 1_000;
    /** Short, because it bounds the time to close; waiting sends no messages. */
    private static final int WAIT_MS = 100;
    /** The interval at which the connection is checked, because a dead one is merely silent. */
    private static final long CHECK_INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(30);

    private final Shard shard;
    private final String self;
    private final Notifier notifier;
    private final int networkTimeoutSeconds;
    private final List<WakeUpTarget> targets;
    private final ServiceThread thread;
    private boolean started;
    private boolean missingSignalsReported;
    private final FailureSeries failures = new FailureSeries();

    /**
     * @param self the sender id of this process; its own signals are ignored
     * @param notifier sends signals to the same shard
     * @param targets the targets to notify; may grow
     */
    Listener(Shard shard, String self, Notifier notifier, Duration networkTimeout, List<WakeUpTarget> targets) {
        this.shard = shard;
        this.self = self;
        this.notifier = notifier;
        this.networkTimeoutSeconds = (int) Math.max(1, networkTimeout.toSeconds());
        this.targets = targets;
        this.thread = new ServiceThread("eventsql-listen-" + shard.name(), this::listenOnce);
    }

    synchronized void start() {
        if (!started && !thread.isClosing()) {
            thread.start();
            started = true;
        }
    }

    private void listenOnce() throws InterruptedException {
        try (BorrowedConnection borrowed = shard.require().borrow()) {
            Connection connection = borrowed.get();
            if (Notifications.isThroughPooler(connection)) {
                LOG.warn(
                        "Connections to {} go through a connection pooler, where LISTEN would remain on a shared one:"
                                + " consumers find the events of other processes only by polling (settings.pollInterval)",
                        shard);
                thread.close();
                return;
            }
            try {
                listen(connection);
            } finally {
                // On a broken connection, too: the pool detects it only by a failing statement.
                shard.tables().notifications().unlisten(connection);
            }
        } catch (SQLException | RuntimeException e) {
            report(e);
        }
        if (!thread.isClosing()) {
            TimeUnit.MILLISECONDS.sleep(RECONNECT_PAUSE_MS);
        }
    }

    private void report(Exception e) {
        String reason = SqlErrors.message(e);
        if (failures.add(reason).isNew()) {
            LOG.warn(
                    "Listening on {} failed; reconnecting every {} ms, consumers poll until then: {}",
                    shard,
                    RECONNECT_PAUSE_MS,
                    reason);
        } else {
            LOG.debug("Listening on {} failed again; reconnecting in {} ms", shard, RECONNECT_PAUSE_MS, e);
        }
    }

    private void listen(Connection connection) throws SQLException {
        shard.tables().notifications().listen(connection);
        int ended = failures.end();
        if (ended > 0) {
            LOG.info("Listening on {} works again after {} failed attempts", shard, ended);
        }
        targets.forEach(WakeUpTarget::wakeAll); // earlier signals were missed
        notifier.request(Signal.Change.none()); // by its own thread: this one has borrowed a connection
        boolean signalReceived = false;
        long checkedAt = System.nanoTime();
        while (!thread.isClosing()) {
            for (String payload : shard.tables().notifications().await(connection, WAIT_MS)) {
                signalReceived |= Signal.isFrom(self, payload);
                dispatch(payload);
            }
            if (System.nanoTime() - checkedAt > CHECK_INTERVAL_NANOS && !signalReceived && !missingSignalsReported) {
                missingSignalsReported = true;
                LOG.warn(
                        "Signals do not get through {}; consumers find the events of other processes only by polling"
                                + " (settings.pollInterval)",
                        shard);
            }
            if (System.nanoTime() - checkedAt > CHECK_INTERVAL_NANOS) {
                if (!connection.isValid(networkTimeoutSeconds)) {
                    throw new SQLException("the listening connection is dead");
                }
                checkedAt = System.nanoTime();
            }
        }
    }

    /** Notifies the targets, unless this process has sent the signal. A malformed signal wakes everything. */
    private void dispatch(String payload) {
        if (Signal.isFrom(self, payload)) {
            return;
        }
        List<Signal.Change> changes = Signal.decode(payload);
        for (WakeUpTarget target : targets) {
            if (changes.isEmpty()) {
                target.wakeAll();
            }
            for (Signal.Change change : changes) {
                if (change.isOfConsumer()) {
                    target.consumerChanged(change.id());
                } else {
                    target.wake(change.id(), change.partition());
                }
            }
        }
    }

    /** Starts no further wait. */
    void close() {
        thread.close();
    }

    /** Waits until the thread has ended, at most for the given time; then interrupts it. */
    void awaitClosed(long timeoutMs) throws InterruptedException {
        if (!thread.join(TimeUnit.MILLISECONDS.toNanos(timeoutMs))) {
            thread.closeNow();
        }
    }
}
