package io.eventsql.internal.consume;

import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.thread.ServiceThread;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Checks the threads without which the partitions of this process are not handled. Used by one thread. */
final class WorkerCheck {
    private static final Logger LOG = LoggerFactory.getLogger(WorkerCheck.class);

    private final Shard shard;
    private final Duration lease;
    private final List<ServiceThread> workers;
    /** When a worker began to fail (nano time); {@code null}: none does. */
    private @Nullable Long failingSince;

    private boolean reported;

    WorkerCheck(Shard shard, Duration lease, List<ServiceThread> workers) {
        this.shard = shard;
        this.lease = lease;
        this.workers = workers;
    }

    /**
     * Returns whether a thread has been failing for the duration of a lease, by unexpected errors alone: an unavailable
     * database is none. The partitions are released then, and taken again once it works.
     */
    boolean requiresRelease(long nowNanos) {
        @Nullable
        ServiceThread failing = workers.stream()
                .filter(worker -> worker.failure() != null || !worker.isAlive())
                .findFirst()
                .orElse(null);
        if (failing == null) {
            failingSince = null;
            if (reported) {
                reported = false;
                LOG.info("The threads of {} work again; taking partitions", shard);
            }
            return false;
        }
        Long since = failingSince == null ? Long.valueOf(nowNanos) : failingSince;
        failingSince = since;
        boolean releases = nowNanos - since >= lease.toNanos();
        if (releases && !reported) {
            reported = true;
            LOG.error("{} keeps failing; releasing the partitions on {} until it works", failing, shard);
        }
        return releases;
    }
}
