package io.eventsql.internal.consume;

import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.thread.FailureSeries;
import io.eventsql.internal.thread.ServiceThread;
import java.sql.SQLException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Runs the commits of offsets that are due on one shard, for all members of this process: one platform thread. */
final class CommitThread {
    private static final Logger LOG = LoggerFactory.getLogger(CommitThread.class);
    private static final long RETRY_MS = 1_000;

    private final Shard shard;
    /** Commits that were requested, and when they are due (nano time). */
    private final Map<Commit, Long> due = new ConcurrentHashMap<>();

    /** Commits whose last attempt failed. Used by the thread alone. */
    private final Map<Commit, FailureSeries> failing = new HashMap<>();

    private final ServiceThread thread;

    CommitThread(Shard shard) {
        this.shard = shard;
        this.thread = new ServiceThread("eventsql-commit-" + shard.name(), this::runDue);
    }

    /** Commits what one member has handled by then. */
    @FunctionalInterface
    interface Commit {
        void run() throws SQLException;
    }

    void start() {
        thread.start();
    }

    /** Runs a commit after the delay, unless it is requested already. */
    void request(Commit commit, Duration delay) {
        if (!due.containsKey(commit)) {
            long at = System.nanoTime() + delay.toNanos();
            if (due.putIfAbsent(commit, at) == null) {
                thread.unpark();
            }
        }
    }

    /** Returns the thread, whose failure shows that nothing is committed. */
    ServiceThread thread() {
        return thread;
    }

    private void runDue() {
        long now = System.nanoTime();
        long next = Long.MAX_VALUE;
        for (Map.Entry<Commit, Long> entry : List.copyOf(due.entrySet())) {
            long left = entry.getValue() - now;
            if (left <= 0) {
                due.remove(entry.getKey()); // before committing: what is handled from now on is requested anew
                runOrRetry(entry.getKey());
            } else {
                next = Math.min(next, left);
            }
        }
        if (next == Long.MAX_VALUE && due.isEmpty()) {
            LockSupport.park(this);
        } else {
            LockSupport.parkNanos(this, next == Long.MAX_VALUE ? 0 : next);
        }
    }

    private void runOrRetry(Commit commit) {
        boolean committed = false;
        try {
            commit.run();
            committed = true;
            reportEnd(commit);
        } catch (SQLException | RuntimeException e) {
            report(commit, e);
        } finally {
            if (!committed) { // after an Error, too
                due.putIfAbsent(commit, System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(RETRY_MS));
            }
        }
    }

    private void report(Commit commit, Exception e) {
        FailureSeries failures = failing.computeIfAbsent(commit, c -> new FailureSeries());
        if (failures.add(SqlErrors.message(e)).isNew()) {
            LOG.warn("Committing offsets on {} failed; retrying every {} ms: {}", shard, RETRY_MS, e.toString());
        } else {
            LOG.debug("Committing offsets on {} failed again; retrying in {} ms", shard, RETRY_MS, e);
        }
    }

    private void reportEnd(Commit commit) {
        FailureSeries failures = failing.remove(commit);
        if (failures != null) {
            LOG.info("Committing offsets on {} works again after {} failed attempts", shard, failures.end());
        }
    }

    void close(CloseDeadline deadline) throws InterruptedException {
        thread.close();
        thread.unpark();
        deadline.join(thread);
    }
}
