package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.internal.shard.Shard;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A running member of a consumer. On each shard it registers the consumer; then the lease keeper takes its share of the
 * partitions, and fetcher, dispatcher and committer work on them. A shard that does not answer is joined when it does.
 * Thread-safe.
 */
final class Member implements Subscription {
    private static final Logger LOG = LoggerFactory.getLogger(Member.class);
    private static final long JOIN_RETRY_MS = 1_000;

    private final UUID id = UUID.randomUUID();
    private final String name;
    private final ConsumerSpec spec;
    private final StreamSpec stream;
    private final Dispatcher dispatcher;
    private final Failures failures;
    private final Consumers consumers;
    private final List<ShardMember> joined = new CopyOnWriteArrayList<>();
    private volatile boolean closed;

    Member(
            String name,
            ConsumerSpec spec,
            StreamSpec stream,
            Dispatcher dispatcher,
            Failures failures,
            Consumers consumers) {
        this.name = name;
        this.spec = spec;
        this.stream = stream;
        this.dispatcher = dispatcher;
        this.consumers = consumers;
        this.failures = failures;
    }

    UUID id() {
        return id;
    }

    /** For people: host, process and number. */
    String name() {
        return name;
    }

    StreamSpec stream() {
        return stream;
    }

    Dispatcher dispatcher() {
        return dispatcher;
    }

    Failures failures() {
        return failures;
    }

    Listeners listeners() {
        return consumers.listeners();
    }

    /** Joins a shard now, or later if it does not answer. */
    void join(Shard shard) {
        try {
            joinNow(shard);
        } catch (SQLException | RuntimeException e) { // a data source may throw anything
            LOG.warn("Consumer {} joins {} later: {}", spec.name(), shard, e.getMessage());
            joinLater(shard);
        }
    }

    private void joinLater(Shard shard) {
        shard.inBackground(JOIN_RETRY_MS, () -> {
            try {
                joinNow(shard);
                LOG.debug("Consumer {} has joined {}", spec.name(), shard);
            } catch (SQLException | RuntimeException e) { // a data source may throw anything
                LOG.debug("Consumer {} cannot join {} yet", spec.name(), shard, e);
                joinLater(shard);
            }
        });
    }

    private void joinNow(Shard shard) throws SQLException {
        if (closed) {
            return;
        }
        int streamId = shard.ensureStream(stream);
        int consumerId = shard.require()
                .transaction(connection -> shard.tables()
                        .consumers()
                        .register(connection, streamId, stream.name(), spec.name(), spec.startPosition()));
        synchronized (this) {
            if (!closed) {
                ShardMember member = new ShardMember(this, consumers.on(shard), streamId, consumerId);
                joined.add(member);
                member.threads().fetcher().add(member);
                member.threads().keeper().add(member);
            }
        }
    }

    @Override
    public ConsumerSpec spec() {
        return spec;
    }

    @Override
    public boolean isRunning() {
        return !closed && (joined.isEmpty() || !joined.stream().allMatch(ShardMember::isClosed));
    }

    @Override
    public void close() {
        close(consumers.closeTimeout());
    }

    @Override
    public boolean close(Duration timeout) {
        return !beginClose() || awaitClosed(System.nanoTime() + timeout.toNanos());
    }

    /**
     * No further event is given to the handler.
     *
     * @return {@code false} if it was closed before
     */
    boolean beginClose() {
        synchronized (this) {
            if (closed) {
                return false;
            }
            closed = true;
        }
        dispatcher.stop();
        failures.close();
        for (ShardMember member : joined) {
            member.threads().fetcher().remove(member);
            member.threads().keeper().beginLeave(member);
        }
        return true;
    }

    /** Waits for the handlers, whose partitions are given back as they end. */
    boolean awaitClosed(long deadlineNanos) {
        boolean ended = true;
        try {
            for (ShardMember member : joined) {
                ended &= member.threads().keeper().awaitLeft(member, deadlineNanos);
            }
        } catch (InterruptedException e) {
            joined.forEach(ShardMember::leaveNow);
            Thread.currentThread().interrupt();
            ended = false;
        }
        dispatcher.shutdown();
        consumers.closed(this);
        return ended;
    }
}
