package io.eventsql.internal.wake;

import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.thread.ServiceThread;
import java.sql.SQLException;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends one shard's wake-up signals to other processes: the first one immediately, further ones at most once per interval,
 * each for all changes since the last one. Every change is followed by a signal. Thread-safe.
 */
final class Notifier {
    private static final Logger LOG = LoggerFactory.getLogger(Notifier.class);
    private static final long ERROR_PAUSE_MS = 1_000;

    private final Shard shard;
    private final String self;
    private final long intervalNanos;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition requested = lock.newCondition();
    private final Set<Signal.Change> changes = new HashSet<>();
    private final ServiceThread thread;
    private boolean started;
    private boolean closed;

    Notifier(Shard shard, String self, Duration interval) {
        this.shard = shard;
        this.self = self;
        this.intervalNanos = interval.toNanos();
        this.thread = new ServiceThread("eventsql-notify-" + shard.name(), this::sendNext);
    }

    void request(Signal.Change change) {
        lock.lock();
        try {
            if (closed) {
                return;
            }
            if (!started) {
                thread.start();
                started = true;
            }
            if (changes.add(change)) {
                requested.signal();
            }
        } finally {
            lock.unlock();
        }
    }

    private void sendNext() throws InterruptedException {
        String payload = takePayload();
        if (payload == null) {
            thread.close();
        } else {
            send(payload);
            TimeUnit.NANOSECONDS.sleep(intervalNanos);
        }
    }

    /** Waits for changes and returns their signal; {@code null} once closed and all changes are sent. */
    private @Nullable String takePayload() throws InterruptedException {
        lock.lockInterruptibly();
        try {
            while (changes.isEmpty()) {
                if (closed) {
                    return null;
                }
                requested.await();
            }
            String payload = Signal.encode(self, changes);
            changes.clear();
            return payload;
        } finally {
            lock.unlock();
        }
    }

    private void send(String payload) throws InterruptedException {
        try {
            shard.require().call(connection -> {
                shard.tables().notifications().send(connection, payload);
                return payload;
            });
        } catch (SQLException | RuntimeException e) {
            LOG.debug("Sending a wake-up signal on {} failed; consumers find the events by polling", shard, e);
            TimeUnit.MILLISECONDS.sleep(ERROR_PAUSE_MS);
        }
    }

    /** Accepts no further changes; those requested before are still sent. */
    void close() {
        lock.lock();
        try {
            closed = true;
            requested.signal();
        } finally {
            lock.unlock();
        }
    }

    /** Waits until the thread has ended, at most for the given time; then interrupts it. */
    void awaitClosed(long timeoutMs) throws InterruptedException {
        if (!thread.join(TimeUnit.MILLISECONDS.toNanos(timeoutMs))) {
            thread.closeNow();
        }
    }
}
