package io.eventsql.internal.consume;

import java.time.Duration;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What closing a member has cut off, for the log: handlers that still run, and what will be handled again. */
record UnfinishedWork(String consumer, List<String> partitions) {
    private static final Logger LOG = LoggerFactory.getLogger(UnfinishedWork.class);
    private static final int PARTITIONS_LOGGED_MAX = 50;

    /** Returns what is unfinished now: read it before the assignments end. */
    static UnfinishedWork of(ShardMember member) {
        return new UnfinishedWork(
                "Consumer " + member.spec().name() + " of stream " + member.spec().stream(),
                member.unfinished().stream().map(UnfinishedWork::describe).toList());
    }

    private static String describe(Assignment assignment) {
        String text = "partition " + assignment.partition() + " from offset " + assignment.committedOffset() + " on";
        long uncommitted = assignment.uncommittedEvents();
        if (uncommitted > 0) {
            text += " (" + uncommitted + " events handled, not committed)";
        }
        if (assignment.isHandling()) {
            Duration running = Duration.ofMillis(
                    Duration.ofNanos(assignment.longestCallNanos()).toMillis());
            text += ", whose handler has been running for " + running;
        }
        return text;
    }

    /** Logs it as a warning; says so if nothing was cut off. */
    void report(String what) {
        if (partitions.isEmpty()) {
            LOG.warn("{} {}; no event is handled again", consumer, what);
            return;
        }
        int more = Math.max(0, partitions.size() - PARTITIONS_LOGGED_MAX);
        LOG.warn(
                "{} {}. When the leases have expired, other members handle again: {}{}",
                consumer,
                what,
                String.join("; ", partitions.subList(0, partitions.size() - more)),
                more == 0 ? "" : "; and " + more + " more partitions");
    }
}
