package io.eventsql.internal.consume;

import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.thread.FailureSeries;
import io.eventsql.internal.thread.ServiceThread;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs the commits of offsets that are due on one shard, for all members of this process: one platform thread. What was requested half
 * an interval ago is committed with what is due ({@link SharedCommit}), so members that are busy soon share their commits.
 */
final class CommitThread {
    private static final Logger LOG = LoggerFactory.getLogger(CommitThread.class);
    private static final long RETRY_MS = 1_000;

    private final Shard shard;
    private final SharedCommit shared;
    /** Commits that were requested. */
    private final Map<OffsetCommitter, Due> due = new ConcurrentHashMap<>();

    /** Commits whose last attempt failed for a reason of their own. Used by the thread alone. */
    private final Map<OffsetCommitter, FailureSeries> failing = new HashMap<>();

    /** Attempts that failed without a connection. Used by the thread alone. */
    private final FailureSeries unavailable = new FailureSeries();

    private final ServiceThread thread;

    /**
     * When a commit is to be made (nano time).
     *
     * @param from it may be made with others from then on
     */
    private record Due(long from, long at) {}

    CommitThread(Shard shard) {
        this.shard = shard;
        this.shared = new SharedCommit(shard);
        this.thread = new ServiceThread("eventsql-commit-" + shard.name(), this::runDue);
    }

    void start() {
        thread.start();
    }

    /** Commits what a member has handled by then after the delay, or after half of it, unless that is requested already. */
    void request(OffsetCommitter committer, Duration delay) {
        if (!due.containsKey(committer)) {
            long now = System.nanoTime();
            if (due.putIfAbsent(committer, new Due(now + delay.toNanos() / 2, now + delay.toNanos())) == null) {
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
        for (Due one : due.values()) {
            next = Math.min(next, one.at() - now);
        }
        if (next <= 0) {
            commit(takeDue(now));
        } else if (next == Long.MAX_VALUE) {
            LockSupport.park(this);
        } else {
            LockSupport.parkNanos(this, next);
        }
    }

    /** Removes them before they are committed: what is handled from now on is requested anew. */
    private List<OffsetCommitter> takeDue(long now) {
        List<OffsetCommitter> taken = new ArrayList<>();
        due.entrySet().removeIf(entry -> {
            boolean isDue = entry.getValue().from() - now <= 0;
            if (isDue) {
                taken.add(entry.getKey());
            }
            return isDue;
        });
        return taken;
    }

    private void commit(List<OffsetCommitter> taken) {
        Set<OffsetCommitter> left = new LinkedHashSet<>(taken);
        try {
            List<OffsetCommitter> healthy =
                    taken.stream().filter(one -> !failing.containsKey(one)).toList();
            for (int from = 0; from < healthy.size() - 1; from += SharedCommit.MEMBERS_MAX) {
                List<OffsetCommitter> some =
                        healthy.subList(from, Math.min(healthy.size(), from + SharedCommit.MEMBERS_MAX));
                List<OffsetCommitter> alone = shared.commit(some);
                some.stream().filter(one -> !alone.contains(one)).forEach(left::remove);
            }
            for (OffsetCommitter one : List.copyOf(left)) {
                commitAlone(one);
                left.remove(one);
            }
            reportEnd(unavailable);
        } catch (SQLException e) { // the database is unavailable, for all that are left
            report(unavailable, e);
        } finally { // after an Error, too
            left.forEach(this::retry);
        }
    }

    /** @throws SQLException if there is no connection */
    private void commitAlone(OffsetCommitter committer) throws SQLException {
        try {
            committer.commit();
            reportEnd(failing.remove(committer));
        } catch (SQLException | RuntimeException e) {
            if (e instanceof SQLException failure && SharedCommit.isUnavailable(failure)) {
                throw failure;
            }
            retry(committer);
            report(failing.computeIfAbsent(committer, c -> new FailureSeries()), e);
        }
    }

    private void retry(OffsetCommitter committer) {
        long at = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(RETRY_MS);
        due.putIfAbsent(committer, new Due(at, at));
    }

    private void report(FailureSeries failures, Exception e) {
        if (failures.add(SqlErrors.message(e)).isNew()) {
            LOG.warn("Committing offsets on {} failed; retrying every {} ms: {}", shard, RETRY_MS, e.toString());
        } else {
            LOG.debug("Committing offsets on {} failed again; retrying in {} ms", shard, RETRY_MS, e);
        }
    }

    private void reportEnd(@Nullable FailureSeries failures) {
        int ended = failures == null ? 0 : failures.end();
        if (ended > 0) {
            LOG.info("Committing offsets on {} works again after {} failed attempts", shard, ended);
        }
    }

    void close(CloseDeadline deadline) throws InterruptedException {
        thread.close();
        thread.unpark();
        deadline.join(thread);
    }
}
