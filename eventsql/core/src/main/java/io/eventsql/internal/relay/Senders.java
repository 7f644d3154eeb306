package io.eventsql.internal.relay;

import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.ErrorKind;
import io.eventsql.internal.sql.RelayTable.RelayLease;
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
 * Runs the senders of one outbox, one for each other shard. An unavailable shard delays only its own events. Threads exist
 * only while there are events to send. Thread-safe.
 */
final class Senders {
    private static final Logger LOG = LoggerFactory.getLogger(Senders.class);
    private static final long BACKOFF_MIN_MS = 20;
    private static final long BACKOFF_MAX_MS = 1_000;
    private static final long IDLE_THREAD_SECONDS = 10;

    private final OutboxDatabase outbox;
    private final Map<Integer, SenderTask> tasks = new HashMap<>();
    private final Consumer<RelayLease> lost;
    private final @Nullable ScheduledThreadPoolExecutor executor;
    private volatile @Nullable RelayLease lease;

    /** @param lost called when a lease has ended */
    Senders(OutboxDatabase outbox, List<Shard> shards, Function<Shard, Sender> sender, Consumer<RelayLease> lost) {
        this.outbox = outbox;
        this.lost = lost;
        for (Shard shard : shards) {
            tasks.put(shard.number(), new SenderTask(shard, sender.apply(shard)));
        }
        executor = tasks.isEmpty() ? null : newExecutor(tasks.size());
    }

    private ScheduledThreadPoolExecutor newExecutor(int number) {
        ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(number, task -> {
            Thread thread = new Thread(task, "eventsql-transfer-" + outbox);
            thread.setDaemon(true);
            return thread;
        });
        executor.setKeepAliveTime(IDLE_THREAD_SECONDS, TimeUnit.SECONDS);
        executor.allowCoreThreadTimeOut(true);
        executor.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
        return executor;
    }

    /** Sets the lease of further transactions; {@code null}: nothing is sent. */
    void setTenure(@Nullable RelayLease current) {
        lease = current;
    }

    /** Signals that there may be events for these shards. */
    void wake(Collection<Integer> shards) {
        for (Integer shard : shards) {
            SenderTask task = tasks.get(shard);
            if (task != null) {
                task.wake();
            }
        }
    }

    /** Stops each sender after its current page. */
    void close() {
        lease = null;
        if (executor != null) {
            executor.shutdownNow();
        }
    }

    /** Waits until all senders have stopped; returns {@code false} if the deadline has passed. */
    boolean awaitEnd(long deadlineNanos) throws InterruptedException {
        return executor == null || executor.awaitTermination(deadlineNanos - System.nanoTime(), TimeUnit.NANOSECONDS);
    }

    /** Sends to one shard, in at most one thread at a time. */
    private final class SenderTask {
        private final Shard shard;
        private final Sender sender;
        /** Whether it is running, or scheduled to run after a pause. */
        private boolean busy;
        /** Whether there may be events that the current run has not seen. */
        private boolean wanted;

        private int failures;

        SenderTask(Shard shard, Sender sender) {
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
                if (executor != null) {
                    executor.schedule(this::run, delayMs, TimeUnit.MILLISECONDS).state();
                }
            } catch (RejectedExecutionException e) {
                LOG.debug("The senders of outbox {} are closed", outbox, e);
            }
        }

        private synchronized boolean begin() {
            busy = wanted && lease != null;
            wanted = false;
            return busy;
        }

        private void run() {
            while (begin()) {
                if (!sendAll()) {
                    return;
                }
            }
        }

        /** Sends until no event is left; after a failure schedules a retry and returns {@code false}. */
        private boolean sendAll() {
            RelayLease current = lease;
            try {
                while (current != null && current.equals(lease) && sender.send(current)) {
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
            } catch (RuntimeException | Error e) { // the events must be sent, whatever failed
                LOG.error("Sending events of outbox {} to {} failed; retrying in {} ms", outbox, shard, retry(), e);
                return false;
            }
        }

        private void failed(SQLException e) {
            ErrorKind kind = SqlErrors.classify(e);
            boolean unavailable = e instanceof Sender.ShardFailedException
                    && (kind == ErrorKind.NOT_SENT || kind == ErrorKind.IN_DOUBT);
            if (unavailable) {
                shard.setHealthy(false);
            }
            boolean first = failures == 0;
            long pauseMs = retry();
            String problem = unavailable ? "Shard {} unavailable" : "Sending to shard {} failed";
            if (first) {
                LOG.warn(
                        problem + "; outbox {} keeps its events and retries in {} ms: {}",
                        shard,
                        outbox,
                        pauseMs,
                        e.getMessage());
            } else {
                LOG.debug(problem + " again; outbox {} retries in {} ms", shard, outbox, pauseMs, e);
            }
        }

        /** Schedules the next run with a backoff; returns the pause in milliseconds. */
        private synchronized long retry() {
            long backoff = Math.min(BACKOFF_MIN_MS << Math.min(failures++, 10), BACKOFF_MAX_MS);
            long pauseMs = backoff / 2 + ThreadLocalRandom.current().nextLong(backoff / 2 + 1);
            wanted = true;
            start(pauseMs);
            return pauseMs;
        }
    }
}
