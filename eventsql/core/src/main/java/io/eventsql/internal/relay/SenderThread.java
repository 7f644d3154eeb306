package io.eventsql.internal.relay;

import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.ErrorKind;
import io.eventsql.internal.sql.RelayTable.RelayLease;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.thread.FailureSeries;
import io.eventsql.internal.thread.ServiceThread;
import java.sql.SQLException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends the events of one outbox to one other shard while this process has the lease. The thread exists only while there are
 * events to send. Thread-safe.
 */
final class SenderThread {
    private static final Logger LOG = LoggerFactory.getLogger(SenderThread.class);
    private static final long IDLE_NANOS_MAX = TimeUnit.SECONDS.toNanos(10);

    private final OutboxDatabase outbox;
    private final Shard shard;
    private final Sender sender;
    private final Tenure tenure;
    private final FailureSeries failures = new FailureSeries();

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private @Nullable ServiceThread thread;
    /** Whether there may be events that the current run has not seen. */
    private boolean wanted;
    /** The earliest time of the next run: later after a failure. */
    private long notBeforeNanos = System.nanoTime();

    private boolean closed;

    /** The lease under which events are sent. */
    interface Tenure {
        /** Returns the lease of this process; {@code null} while it does not relay. */
        @Nullable
        RelayLease current();

        /** Signals that the lease has ended, as a transaction has found out. */
        void ended();
    }

    SenderThread(OutboxDatabase outbox, Shard shard, Sender sender, Tenure tenure) {
        this.outbox = outbox;
        this.shard = shard;
        this.sender = sender;
        this.tenure = tenure;
    }

    /** Signals that there may be events to send. */
    void wake() {
        lock.lock();
        try {
            if (closed) {
                return;
            }
            wanted = true;
            changed.signal();
            if (thread == null) {
                ServiceThread started = new ServiceThread("eventsql-transfer-" + outbox, this::run);
                started.start();
                thread = started;
            }
        } finally {
            lock.unlock();
        }
    }

    private void run() throws InterruptedException {
        if (!awaitEvents()) {
            return;
        }
        boolean sent = false;
        try {
            sent = sendAll();
        } finally { // whatever was thrown, the events must be sent
            if (!sent) {
                lock.lock();
                try {
                    wanted = true;
                } finally {
                    lock.unlock();
                }
            }
        }
    }

    /**
     * Waits until there may be events and the pause after a failure is over, or streams are to be looked up; returns {@code false} if
     * the thread ends.
     */
    private boolean awaitEvents() throws InterruptedException {
        lock.lockInterruptibly();
        try {
            boolean hasPending = sender.hasPending() && tenure.current() != null;
            long idleEndNanos = System.nanoTime() + (hasPending ? sender.untilLookUpNanos() : IDLE_NANOS_MAX);
            while (!closed) {
                long remaining = (wanted ? notBeforeNanos : idleEndNanos) - System.nanoTime();
                if (remaining > 0) {
                    changed.awaitNanos(remaining);
                } else if (wanted || hasPending) {
                    wanted = false;
                    return true;
                } else {
                    break;
                }
            }
            if (thread != null) {
                thread.close();
                thread = closed ? thread : null;
            }
            return false;
        } finally {
            lock.unlock();
        }
    }

    /** Sends until no event is left, or the lease has ended; returns {@code false} after a failure. */
    private boolean sendAll() {
        RelayLease lease = tenure.current();
        try {
            boolean more = true;
            while (more && lease != null && lease.equals(tenure.current())) {
                more = sender.send(lease);
                if (more) {
                    shard.setHealthy(true);
                }
                succeeded();
            }
            return true;
        } catch (SQLException e) {
            if (SqlErrors.state(e).equals(SqlErrors.RELAY_LOST)) {
                tenure.ended();
                return true;
            }
            failed(e);
        } catch (RuntimeException | Error e) {
            FailureSeries.Failure failure = pauseAfter(e.toString());
            if (failure.isNew()) {
                LOG.error(
                        "Sending events of outbox {} to {} failed; retrying in {} ms",
                        outbox,
                        shard,
                        failure.retryMs(),
                        e);
            }
        }
        return false;
    }

    private void succeeded() {
        int ended = failures.end();
        if (ended > 0) {
            LOG.info("Sending events of outbox {} to {} works again after {} failed attempts", outbox, shard, ended);
        }
    }

    private void failed(SQLException e) {
        ErrorKind kind = SqlErrors.classify(e);
        boolean unavailable =
                e instanceof Sender.ShardFailedException && (kind == ErrorKind.NOT_SENT || kind == ErrorKind.IN_DOUBT);
        if (unavailable) {
            shard.setHealthy(false);
        }
        FailureSeries.Failure failure = pauseAfter(SqlErrors.message(e));
        String problem = unavailable ? "Shard {} unavailable" : "Sending to shard {} failed";
        if (failure.isNew()) {
            LOG.warn(
                    problem + "; outbox {} keeps its events and retries in {} ms: {}",
                    shard,
                    outbox,
                    failure.retryMs(),
                    SqlErrors.message(e));
        } else {
            LOG.debug(problem + " again; outbox {} retries in {} ms", shard, outbox, failure.retryMs(), e);
        }
    }

    private FailureSeries.Failure pauseAfter(String reason) {
        FailureSeries.Failure failure = failures.add(reason);
        lock.lock();
        try {
            notBeforeNanos = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(failure.retryMs());
        } finally {
            lock.unlock();
        }
        return failure;
    }

    /** Lets the thread end after its current page. */
    void close() {
        lock.lock();
        try {
            closed = true;
            changed.signal();
        } finally {
            lock.unlock();
        }
    }

    /** Waits until the thread has ended; interrupts it and returns {@code false} if the deadline has passed. */
    boolean awaitEnd(long deadlineNanos) throws InterruptedException {
        ServiceThread running;
        lock.lock();
        try {
            running = thread;
        } finally {
            lock.unlock();
        }
        if (running == null || running.join(Math.max(deadlineNanos - System.nanoTime(), 1))) {
            return true;
        }
        LOG.warn(
                "Sending events of outbox {} to {} has not ended within the close timeout; another process or the next start"
                        + " sends the rest",
                outbox,
                shard);
        running.closeNow();
        return false;
    }
}
