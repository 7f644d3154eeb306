package io.eventsql.internal.consume;

import io.eventsql.ConsumerControl;
import io.eventsql.ConsumerPosition;
import io.eventsql.ConsumerSpec;
import io.eventsql.EventBatchHandler;
import io.eventsql.EventHandler;
import io.eventsql.EventSqlException;
import io.eventsql.FailurePolicy;
import io.eventsql.InvalidInputException;
import io.eventsql.ReadFrom;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.TransactionBoundary;
import io.eventsql.TransactionalEventBatchHandler;
import io.eventsql.TransactionalEventHandler;
import io.eventsql.UnknownStreamException;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.shard.Replicas;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.wake.WakeUp;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Starts and closes the members of this process, and the threads that they share on each shard. Thread-safe. */
public final class Consumers {
    private static final Logger LOG = LoggerFactory.getLogger(Consumers.class);

    private final Shards shards;
    private final StreamRegistry streams;
    private final Replicas replicas;
    private final Settings settings;
    private final SegmentKeeper segments;
    private final WakeUp wakeUp;
    private final Listeners listeners;
    private final ShardBarriers barriers;
    private final Map<Shard, ShardThreads> threads = new HashMap<>();
    private final Set<Member> members = ConcurrentHashMap.newKeySet();
    private final Member.Owner owner = new MemberOwner();
    private boolean closed;

    public Consumers(
            Shards shards,
            StreamRegistry streams,
            Replicas replicas,
            Settings settings,
            SegmentKeeper segments,
            WakeUp wakeUp,
            Listeners listeners) {
        this.shards = shards;
        this.streams = streams;
        this.replicas = replicas;
        this.settings = settings;
        this.segments = segments;
        this.wakeUp = wakeUp;
        this.listeners = listeners;
        this.barriers = new ShardBarriers(shards, wakeUp);
    }

    public Subscription subscribe(ConsumerSpec spec, EventHandler handler) {
        return start(spec, HandlerCall.ofSingle(handler));
    }

    public Subscription subscribeBatch(ConsumerSpec spec, EventBatchHandler handler) {
        requireNoKeyConcurrency(spec, "a batch handler");
        return start(spec, HandlerCall.ofBatch(handler));
    }

    /** Starts a member whose transactions are begun and ended by the boundary; without one, by the library. */
    public Subscription subscribeTransactional(
            ConsumerSpec spec, @Nullable TransactionBoundary boundary, TransactionalEventHandler handler) {
        TransactionalEventBatchHandler single = (events, connection) -> handler.handle(events.getFirst(), connection);
        return startTransactional(spec, boundary, single, false);
    }

    /** Starts a member as {@link #subscribeTransactional} does, with a handler that gets many events. */
    public Subscription subscribeTransactionalBatch(
            ConsumerSpec spec, @Nullable TransactionBoundary boundary, TransactionalEventBatchHandler handler) {
        return startTransactional(spec, boundary, handler, true);
    }

    private Subscription startTransactional(
            ConsumerSpec spec,
            @Nullable TransactionBoundary boundary,
            TransactionalEventBatchHandler handler,
            boolean takesBatches) {
        requireNoKeyConcurrency(spec, "a transactional handler");
        HandlerTransactions transactions =
                boundary == null ? new HandlerTransactions.Own() : new HandlerTransactions.Foreign(boundary);
        return start(
                spec,
                (shard, committer) ->
                        new TransactionalCall(takesBatches, handler, transactions, settings.lease(), shard, committer));
    }

    /** With keys handled in parallel the offset advances past several calls at once: no call can commit it. */
    private static void requireNoKeyConcurrency(ConsumerSpec spec, String handler) {
        if (spec.keyConcurrency() > 1) {
            throw new InvalidInputException(
                    "consumer.keyConcurrency", "must be 1 with " + handler + ", but is " + spec.keyConcurrency());
        }
    }

    private Subscription start(ConsumerSpec spec, HandlerCall.Factory handler) {
        StreamSpec stream = streams.require(spec.stream());
        if (spec.readFrom() == ReadFrom.REPLICA && replicas.isEmpty()) {
            LOG.warn(
                    "Consumer {} of stream {} reads from the primary: no replica of a shard is configured",
                    spec.name(),
                    spec.stream());
        }
        @Nullable StreamSpec deadLetterStream = findOrCreateDeadLetterStream(spec, stream);
        Member member;
        synchronized (this) {
            if (closed) {
                throw new EventSqlException("EventSQL is closed");
            }
            PipelineContext context = new PipelineContext(
                    handler,
                    deadLetterStream,
                    new HandlerThreads(spec),
                    new FetchBudget(spec),
                    new CloseSignal(),
                    segments,
                    wakeUp,
                    listeners);
            member = new Member(MemberNames.next(), spec, stream, context, owner);
            members.add(member);
        }
        try {
            member.join(shards.all());
            return member;
        } catch (RuntimeException | Error e) { // the caller has nothing to close it with
            member.close(Duration.ZERO);
            throw e;
        }
    }

    private @Nullable StreamSpec findOrCreateDeadLetterStream(ConsumerSpec spec, StreamSpec stream) {
        if (spec.failurePolicy() == FailurePolicy.STOP) {
            return null;
        }
        if (spec.deadLetterStream().equals(spec.stream())) {
            throw new InvalidInputException("consumer.deadLetterStream", "must not be the consumer's own stream");
        }
        StreamSpec deadLetters = findOrCreate(spec.deadLetterStream(), stream.partitions());
        if (deadLetters.partitions() != stream.partitions()) {
            throw new InvalidInputException(
                    "consumer.deadLetterStream",
                    "must have as many partitions as stream " + stream.name() + ", " + stream.partitions() + ", but "
                            + deadLetters.name() + " has " + deadLetters.partitions());
        }
        return deadLetters;
    }

    private StreamSpec findOrCreate(String name, int partitions) {
        try {
            return streams.require(name);
        } catch (UnknownStreamException e) {
            StreamSpec created = StreamSpec.of(name).withPartitions(partitions);
            streams.create(created);
            return created;
        }
    }

    public ConsumerControl control(String stream, String consumer) {
        return new Control(shards, streams.require(stream), consumer, wakeUp);
    }

    /** Returns the members whose close has not begun; the others stay members until their handlers have ended. */
    public List<Subscription> subscriptions() {
        return members.stream()
                .filter(member -> !member.isClosed())
                .map(Subscription.class::cast)
                .toList();
    }

    /** See {@link io.eventsql.EventSql#positions}. */
    public List<ConsumerPosition> positions(String stream, String consumer) {
        return PositionReader.read(shards, streams.require(stream), consumer);
    }

    private final class MemberOwner implements Member.Owner {
        @Override
        public ShardThreads startThreads(Shard shard) {
            synchronized (Consumers.this) {
                return threads.computeIfAbsent(
                        shard,
                        s -> ShardThreads.start(s, replicas.of(s).orElse(null), settings, wakeUp, listeners, barriers));
            }
        }

        @Override
        public Duration closeTimeout() {
            return settings.closeTimeout();
        }

        @Override
        public void memberClosed(Member member) {
            members.remove(member);
        }
    }

    /**
     * Closes all members at the same time, then the threads they share.
     *
     * @return whether all handlers ended in time
     */
    public boolean close(CloseDeadline deadline) throws InterruptedException {
        synchronized (this) {
            closed = true;
        }
        boolean ended = true;
        members.forEach(Member::beginClose);
        for (Member member : members) {
            ended &= member.awaitClosed(deadline);
        }
        List<ShardThreads> started;
        synchronized (this) {
            started = List.copyOf(threads.values());
        }
        try {
            closeAll(started, deadline);
        } finally {
            barriers.close(deadline);
        }
        return ended;
    }

    /** Closes all of them, also if the caller is interrupted. */
    private static void closeAll(List<ShardThreads> started, CloseDeadline deadline) throws InterruptedException {
        @Nullable InterruptedException interrupt = null;
        for (ShardThreads one : started) {
            try {
                one.close(deadline);
            } catch (InterruptedException e) {
                interrupt = e;
            }
        }
        if (interrupt != null) {
            throw interrupt;
        }
    }
}
