package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import io.eventsql.InvalidInputException;
import io.eventsql.StartPosition;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.ConsumerTable;
import io.eventsql.internal.sql.StreamTable;
import io.eventsql.internal.thread.FailureSeries;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.OptionalInt;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A running member of a consumer. On each shard it registers the consumer and starts a pipeline. A shard that is
 * unavailable is joined when it is available. Thread-safe.
 */
final class Member implements Subscription {
    private static final Logger LOG = LoggerFactory.getLogger(Member.class);
    private static final long JOIN_RETRY_MS = 1_000;

    private final UUID id = UUID.randomUUID();
    private final String name;
    private final ConsumerSpec spec;
    private final StreamSpec stream;
    private final PipelineContext context;
    private final HandlerThreads handlerThreads;
    private final CloseSignal closeSignal;
    private final ConsumerStart start;
    private final Owner owner;
    private final List<ShardPipeline> pipelines = new CopyOnWriteArrayList<>();
    private volatile boolean closed;

    Member(String name, ConsumerSpec spec, StreamSpec stream, PipelineContext context, Owner owner) {
        this.name = name;
        this.spec = spec;
        this.stream = stream;
        this.context = context;
        this.handlerThreads = context.handlerThreads();
        this.closeSignal = context.closeSignal();
        this.start = new ConsumerStart(spec.startPosition());
        this.owner = owner;
    }

    /** Provides what the members of a process share, and keeps them until they are closed. */
    interface Owner {
        /** Returns the threads of a shard, which it starts on the first call. */
        ShardThreads startThreads(Shard shard);

        /** Returns how long {@link Member#close()} waits for handlers. */
        Duration closeTimeout();

        void memberClosed(Member member);
    }

    /** Joins each shard now, or later if it is unavailable. */
    void join(List<Shard> shards) {
        if (start.dependsOnRegistration()) {
            shards.forEach(this::findRegistration);
        }
        shards.forEach(this::join);
    }

    /** Finds out since when the consumer has been registered on a shard, if it is. */
    private void findRegistration(Shard shard) {
        ConsumerTable consumers = shard.tables().consumers();
        try {
            OptionalInt streamId = shard.streams().findId(stream);
            if (streamId.isPresent()) {
                long askedAtNanos = System.nanoTime();
                shard.require()
                        .read(connection -> consumers.age(connection, streamId.getAsInt(), spec.name()))
                        .ifPresent(age -> start.registered(askedAtNanos, age));
            }
        } catch (SQLException | RuntimeException e) { // data sources have exceptions of their own
            LOG.debug("Could not determine since when consumer {} exists on {}", spec.name(), shard, e);
        }
    }

    private void join(Shard shard) {
        try {
            joinNow(shard, false);
        } catch (SQLException | RuntimeException e) { // data sources have exceptions of their own
            joinLater(shard, new FailureSeries(), e);
        }
    }

    private void joinLater(Shard shard, FailureSeries failures, Throwable failure) {
        if (failures.add(failure.toString()).isNew()) {
            LOG.warn(
                    "Consumer {} failed to join {}; retrying every {} ms: {}",
                    spec.name(),
                    shard,
                    JOIN_RETRY_MS,
                    failure.getMessage());
        } else {
            LOG.debug("Consumer {} failed again to join {}", spec.name(), shard, failure);
        }
        shard.inBackground(JOIN_RETRY_MS, () -> {
            if (closed) {
                return;
            }
            try {
                joinNow(shard, true);
                LOG.info("Consumer {} has joined {} after {} failed attempts", spec.name(), shard, failures.end());
            } catch (Throwable e) { // a data source may throw anything
                joinLater(shard, failures, e);
            }
        });
    }

    private void joinNow(Shard shard, boolean late) throws SQLException {
        if (closed) {
            return;
        }
        String incarnation = shard.incarnation(); // before the ids
        StreamTable.Row row = shard.streams().readOrCreate(stream); // it may have been created anew
        int consumerId = shard.require().transaction(connection -> register(connection, shard, row.id(), late));
        Membership membership =
                new Membership(id, name, shard.number(), incarnation, consumerId, row.id(), spec, row.spec());
        synchronized (this) {
            if (!closed) {
                pipelines.add(ShardPipeline.start(context, shard, owner.startThreads(shard), membership));
            }
        }
    }

    private int register(Connection connection, Shard shard, int streamId, boolean late) {
        ConsumerTable consumers = shard.tables().consumers();
        StartPosition position = start.on(consumers, connection, late);
        int consumerId = consumers.register(connection, streamId, stream.name(), spec.name(), position);
        StoppedPartitions.warn(spec, shard, consumers.stopped(connection, consumerId));
        return consumerId;
    }

    @Override
    public ConsumerSpec spec() {
        return spec;
    }

    @Override
    public boolean isRunning() {
        return !closed && (pipelines.isEmpty() || !pipelines.stream().allMatch(ShardPipeline::isClosed));
    }

    /** Returns whether closing it has begun; its handlers may still run. */
    boolean isClosed() {
        return closed;
    }

    @Override
    public void close() {
        close(owner.closeTimeout());
    }

    @Override
    public boolean close(Duration timeout) {
        requireTimeout(timeout);
        boolean isOnLeaseThread = pipelines.stream().anyMatch(ShardPipeline::isOnLeaseThread);
        CloseDeadline deadline = CloseDeadline.after(isOnLeaseThread ? Duration.ZERO : timeout);
        beginClose();
        return awaitClosed(deadline);
    }

    private static void requireTimeout(@Nullable Duration timeout) {
        if (timeout == null) {
            throw new InvalidInputException("timeout", "must not be null");
        }
    }

    /** Begins to close: no further event is handled. */
    void beginClose() {
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
        }
        closeSignal.close();
        pipelines.forEach(ShardPipeline::beginClose);
    }

    /**
     * Waits for the handlers, whose partitions are released as they end. After a wait that was too short it can be called again.
     *
     * @return whether all of them have ended before the deadline
     */
    boolean awaitClosed(CloseDeadline deadline) {
        boolean ended = true;
        try {
            for (ShardPipeline pipeline : pipelines) {
                ended &= pipeline.awaitClosed(deadline);
            }
            // One that has left without its handlers waits for them here.
            boolean terminated = handlerThreads.shutdown(ended ? System.nanoTime() : deadline.handlersNanos());
            ended |= terminated;
        } catch (InterruptedException e) {
            pipelines.forEach(ShardPipeline::leaveNow);
            Thread.currentThread().interrupt();
            ended = false;
        }
        if (ended) {
            owner.memberClosed(this);
        }
        return ended;
    }
}
