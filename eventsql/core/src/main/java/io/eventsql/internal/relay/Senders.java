package io.eventsql.internal.relay;

import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.RelayTable.Tenure;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The senders of one outbox, one for each other shard, each at most at work once. A shard that does not answer delays
 * only its own. Threads exist while there is something to send. Thread-safe.
 */
final class Senders {
    private static final Logger LOG = LoggerFactory.getLogger(Senders.class);
    private static final long BACKOFF_MIN_MS = 20;
    private static final long BACKOFF_MAX_MS = 1_000;
    private static final long THREADS_KEPT_SECONDS = 10;

    private final OutboxDatabase outbox;
    private final Map<Integer, Line> lines = new HashMap<>();
    private final Consumer<Tenure> lost;
    private final @Nullable ScheduledThreadPoolExecutor threads;
    private volatile @Nullable Tenure tenure;

    /** @param lost told that a tenure has ended */
    Senders(OutboxDatabase outbox, List<Shard> shards, Function<Shard, Sender> sender, Consumer<Tenure> lost) {
        this.outbox = outbox;
        this.lost = lost;
        for (Shard shard : shards) {
            lines.put(shard.number(), new Line(shard, sender.apply(shard)));
        }
        threads = lines.isEmpty() ? null : threads(lines.size());
    }

    private ScheduledThreadPoolExecutor threads(int number) {
        ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(number, task -> {
            Thread thread = new Thread(task, "eventsql-transfer-" + outbox);
            thread.setDaemon(true);
            return thread;
        });
        executor.setKeepAliveTime(THREADS_KEPT_SECONDS, TimeUnit.SECONDS);
        executor.allowCoreThreadTimeOut(true);
        executor.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
        return executor;
    }

    /** From now on sends under this tenure; {@code null}: nothing. */
    void setTenure(@Nullable Tenure current) {
        tenure = current;
    }

    /** Says that there may be events for these shards. */
    void wake(Collection<Integer> shards) {
        for (Integer shard : shards) {
            Line line = lines.get(shard);
            if (line != null) {
                line.wake();
            }
        }
    }

    /** Ends what is under way at its next step. */
    void close() {
        tenure = null;
        if (threads != null) {
            threads.shutdownNow();
        }
    }

    /** Waits for the end of what was under way; returns whether it came in time. */
    boolean awaitEnd(long deadlineNanos) throws InterruptedException {
        return threads == null || threads.awaitTermination(deadlineNanos - System.nanoTime(), TimeUnit.NANOSECONDS);
    }

    /** What one shard gets. */
    private final class Line {
        private final Shard shard;
        private final Sender sender;
        /** Whether it is at work, or will be after a pause. */
        private boolean busy;
        /** Whether there may be more than what it has looked at. */
        private boolean wanted;

        private int failures;

        Line(Shard shard, Sender sender) {
            this.shard = shard;
            this.sender = sender;
        }

        synchronized void wake() {
            wanted = true;
            if (!busy) {
                busy = true;
                start(0);
            }
        }

        private void start(long delayMs) {
            try {
                if (threads != null) {
                    threads.schedule(this::run, delayMs, TimeUnit.MILLISECONDS).state();
                }
            } catch (RejectedExecutionException e) {
                LOG.debug("{} is being closed", outbox, e);
            }
        }

        private synchronized boolean begin() {
            busy = wanted && tenure != null;
            wanted = false;
            return busy;
        }

        private void run() {
            while (begin()) {
                if (!sendAll()) {
                    synchronized (this) {
                        wanted = true;
                        start(backoffMs());
                    }
                    return;
                }
            }
        }

        /** Sends until nothing is left; returns whether it came to that end. */
        private boolean sendAll() {
            Tenure current = tenure;
            try {
                while (current != null && current.equals(tenure) && sender.send(current)) {
                    failures = 0;
                    shard.setHealthy(true);
                }
                return true;
            } catch (SQLException e) {
                if (SqlErrors.state(e).equals(SqlErrors.RELAY_LOST) && current != null) {
                    lost.accept(current);
                    return true;
                }
                failed(e);
                return false;
            } catch (RuntimeException | Error e) { // whatever goes wrong, its events must not be forgotten
                LOG.error("Sending events of outbox {} to {} failed, and is tried again", outbox, shard, e);
                return false;
            }
        }

        private void failed(SQLException e) {
            if (e instanceof Sender.ShardFailedException && !SqlErrors.isRolledBack(e) && !SqlErrors.isRefused(e)) {
                shard.setHealthy(false);
            }
            if (failures == 0) {
                LOG.warn("Events of outbox {} for {} wait for it: {}", outbox, shard, e.getMessage());
            } else {
                LOG.debug("Events of outbox {} still wait for {}", outbox, shard, e);
            }
        }

        private long backoffMs() {
            long backoff = Math.min(BACKOFF_MIN_MS << Math.min(failures++, 10), BACKOFF_MAX_MS);
            return backoff / 2 + ThreadLocalRandom.current().nextLong(backoff / 2 + 1);
        }
    }
}
