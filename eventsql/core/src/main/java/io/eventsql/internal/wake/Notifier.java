package io.eventsql.internal.wake;

import io.eventsql.internal.shard.Shard;
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
 * Sends one shard's wake-up signals to other processes: at once after a pause, then at most one in each interval, each
 * for everything that has changed meanwhile; the last change of a burst is always followed by one. Thread-safe.
 */
final class Notifier {
    private static final Logger LOG = LoggerFactory.getLogger(Notifier.class);

    private final Shard shard;
    private final String self;
    private final long intervalNanos;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition requested = lock.newCondition();
    private final Set<Signal.News> news = new HashSet<>();
    private @Nullable Thread thread;
    private boolean closed;

    Notifier(Shard shard, String self, Duration interval) {
        this.shard = shard;
        this.self = self;
        this.intervalNanos = interval.toNanos();
    }

    void request(Signal.News one) {
        lock.lock();
        try {
            if (closed) {
                return;
            }
            if (thread == null) {
                thread = new Thread(this::run, "eventsql-notify-" + shard.name());
                thread.setDaemon(true);
                thread.start();
            }
            if (news.add(one)) {
                requested.signal();
            }
        } finally {
            lock.unlock();
        }
    }

    private void run() {
        try {
            for (String payload = next(); payload != null; payload = next()) {
                send(payload);
                TimeUnit.NANOSECONDS.sleep(intervalNanos);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private @Nullable String next() throws InterruptedException {
        lock.lockInterruptibly();
        try {
            while (news.isEmpty()) {
                if (closed) {
                    return null;
                }
                requested.await();
            }
            String payload = Signal.encode(self, news);
            news.clear();
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
            LOG.debug("A wake-up signal on {} was not sent; consumers poll", shard, e);
            TimeUnit.SECONDS.sleep(1);
        }
    }

    /** Sends what was requested, then ends. */
    void close() throws InterruptedException {
        Thread running;
        lock.lockInterruptibly();
        try {
            closed = true;
            requested.signal();
            running = thread;
        } finally {
            lock.unlock();
        }
        if (running != null) {
            running.join(1_000);
            running.interrupt();
        }
    }
}
