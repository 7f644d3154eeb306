package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.UnknownStreamException;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.ConsumerTable.Taken;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A running member of a consumer. On each shard it registers the consumer, takes the partitions and lets fetcher,
 * dispatcher and committer work on them; a shard that does not answer is joined when it does. Thread-safe.
 */
final class Member implements Subscription {
    private static final Logger LOG = LoggerFactory.getLogger(Member.class);
    private static final long JOIN_RETRY_MS = 1_000;

    private final ConsumerSpec spec;
    private final StreamSpec stream;
    private final Dispatcher dispatcher;
    private final Consumers consumers;
    private final Duration closeTimeout;
    private final List<MemberOnShard> joined = new CopyOnWriteArrayList<>();
    private volatile boolean closed;

    Member(ConsumerSpec spec, StreamSpec stream, Dispatcher dispatcher, Consumers consumers, Duration closeTimeout) {
        this.spec = spec;
        this.stream = stream;
        this.dispatcher = dispatcher;
        this.consumers = consumers;
        this.closeTimeout = closeTimeout;
    }

    /** Joins a shard now, or later if it does not answer. */
    void join(Shard shard) {
        try {
            joinNow(shard);
        } catch (SQLException | UnknownStreamException e) {
            LOG.warn("Consumer {} joins {} later: {}", spec.name(), shard, e.getMessage());
            joinLater(shard);
        }
    }

    private void joinLater(Shard shard) {
        shard.inBackground(JOIN_RETRY_MS, () -> {
            try {
                joinNow(shard);
                LOG.debug("Consumer {} has joined {}", spec.name(), shard);
            } catch (SQLException | UnknownStreamException e) {
                LOG.debug("Consumer {} cannot join {} yet", spec.name(), shard, e);
                joinLater(shard);
            }
        });
    }

    private void joinNow(Shard shard) throws SQLException {
        if (closed) {
            return; // or it would take the partitions from a living member
        }
        int streamId = shard.streamId(stream);
        MemberOnShard member = shard.require().transaction(connection -> {
            var table = shard.tables().consumers();
            int consumerId = table.register(connection, streamId, spec.name(), spec.startPosition());
            List<Taken> taken = table.takeAll(connection, consumerId);
            return MemberOnShard.of(spec, stream, shard, streamId, consumerId, taken, dispatcher);
        });
        synchronized (this) {
            if (!closed) {
                joined.add(member);
                consumers.fetcher(shard).add(member);
            }
        }
    }

    @Override
    public ConsumerSpec spec() {
        return spec;
    }

    @Override
    public boolean isRunning() {
        return !closed && (joined.isEmpty() || !joined.stream().allMatch(MemberOnShard::isGivenUp));
    }

    @Override
    public void close() {
        close(closeTimeout);
    }

    @Override
    public boolean close(Duration timeout) {
        synchronized (this) {
            if (closed) {
                return true;
            }
            closed = true;
        }
        long deadline = System.nanoTime() + timeout.toNanos();
        joined.forEach(member -> consumers.fetcher(member.shard()).remove(member));
        dispatcher.stop();
        boolean ended = true;
        try {
            for (MemberOnShard member : joined) {
                for (OwnedPartition partition : member.partitions()) {
                    ended &= partition.awaitNotHandling(deadline);
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            ended = false;
        }
        for (MemberOnShard member : joined) {
            try {
                consumers.committer(member.shard()).commit(member);
            } catch (SQLException e) {
                LOG.warn(
                        "The last offsets of consumer {} on {} are not committed, events are handled again: {}",
                        spec.name(),
                        member.shard(),
                        e.getMessage());
            }
            member.partitions().forEach(OwnedPartition::giveUp);
        }
        dispatcher.shutdown();
        consumers.closed(this);
        return ended;
    }
}
