package io.eventsql.internal.consume;

import io.eventsql.ConsumerControl;
import io.eventsql.ConsumerPosition;
import io.eventsql.ConsumerSpec;
import io.eventsql.EventBatchHandler;
import io.eventsql.EventHandler;
import io.eventsql.EventSqlException;
import io.eventsql.FailurePolicy;
import io.eventsql.InvalidInputException;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.TransactionBoundary;
import io.eventsql.TransactionalEventBatchHandler;
import io.eventsql.TransactionalEventHandler;
import io.eventsql.UnknownStreamException;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.ConsumerTable.Offset;
import io.eventsql.internal.sql.PartitionTable.Head;
import io.eventsql.internal.wake.WakeUp;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** The members of this process, and the threads they share: a set of them for each shard. Thread-safe. */
public final class Consumers {
    private final Shards shards;
    private final StreamRegistry streams;
    private final Settings settings;
    private final SegmentKeeper segments;
    private final WakeUp wakeUp;
    private final Listeners listeners;
    private final Map<Shard, ShardThreads> onShards = new HashMap<>();
    private final Set<Member> members = ConcurrentHashMap.newKeySet();
    private boolean closed;

    public Consumers(
            Shards shards,
            StreamRegistry streams,
            Settings settings,
            SegmentKeeper segments,
            WakeUp wakeUp,
            Listeners listeners) {
        this.shards = shards;
        this.streams = streams;
        this.settings = settings;
        this.segments = segments;
        this.wakeUp = wakeUp;
        this.listeners = listeners;
    }

    public Subscription subscribe(ConsumerSpec spec, EventHandler handler) {
        return start(spec, HandlerCall.ofSingle(handler));
    }

    public Subscription subscribeBatch(ConsumerSpec spec, EventBatchHandler handler) {
        requireNoKeyConcurrency(spec, "a batch handler");
        return start(spec, HandlerCall.ofBatch(handler));
    }

    /** Starts a member whose transactions the boundary begins and ends; without one, the library. */
    public Subscription subscribeTransactional(
            ConsumerSpec spec, @Nullable TransactionBoundary boundary, TransactionalEventHandler handler) {
        TransactionalEventBatchHandler single = (events, connection) -> handler.handle(events.getFirst(), connection);
        return startTransactional(spec, boundary, single, false);
    }

    /** The same with a handler that gets many events. */
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
        return start(spec, new TransactionalCall(takesBatches, handler, transactions, settings.lease()));
    }

    /** An offset that follows keys in parallel cannot be committed with each of them. */
    private static void requireNoKeyConcurrency(ConsumerSpec spec, String handler) {
        if (spec.keyConcurrency() > 1) {
            throw new InvalidInputException(
                    "consumer.keyConcurrency", "must be 1 with " + handler + ", but is " + spec.keyConcurrency());
        }
    }

    private Subscription start(ConsumerSpec spec, HandlerCall call) {
        StreamSpec stream = streams.require(spec.stream());
        Failures failures = new Failures(spec, new DeadLetters(deadLetterStream(spec, stream), segments, wakeUp));
        Member member;
        synchronized (this) {
            if (closed) {
                throw new EventSqlException("EventSQL is closed");
            }
            member = new Member(MemberNames.next(), spec, stream, new Dispatcher(spec, call, failures), failures, this);
            members.add(member);
        }
        shards.all().forEach(member::join);
        return member;
    }

    private @Nullable StreamSpec deadLetterStream(ConsumerSpec spec, StreamSpec stream) {
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
            StreamSpec made = StreamSpec.of(name).withPartitions(partitions);
            streams.create(made);
            return made;
        }
    }

    public ConsumerControl control(String stream, String consumer) {
        return new Control(shards, streams.require(stream), consumer, wakeUp);
    }

    /** The members that were not closed. */
    public List<Subscription> subscriptions() {
        return List.copyOf(members);
    }

    Listeners listeners() {
        return listeners;
    }

    Duration closeTimeout() {
        return settings.closeTimeout();
    }

    /** The threads of a shard; started when first asked for. */
    synchronized ShardThreads on(Shard shard) {
        return onShards.computeIfAbsent(shard, s -> {
            Fetcher fetcher = new Fetcher(s, settings.pollInterval());
            OffsetCommitter committer = new OffsetCommitter(s);
            LeaseKeeper keeper = new LeaseKeeper(s, settings, wakeUp);
            fetcher.start();
            committer.start();
            keeper.start();
            wakeUp.register(s, fetcher);
            wakeUp.register(s, keeper);
            return new ShardThreads(s, fetcher, committer, keeper);
        });
    }

    void closed(Member member) {
        members.remove(member);
    }

    /** How far a consumer is, by shard and partition; shards that do not know it yet are left out. */
    public List<ConsumerPosition> positions(String stream, String consumer) {
        StreamSpec spec = streams.require(stream);
        List<ConsumerPosition> positions = new ArrayList<>();
        for (Shard shard : shards.all()) {
            try {
                OptionalInt streamId = shard.findStreamId(spec);
                if (streamId.isPresent()) {
                    positions.addAll(shard.require().call(c -> positions(c, shard, streamId.getAsInt(), consumer)));
                }
            } catch (SQLException e) {
                throw new EventSqlException(
                        "The positions of consumer " + consumer + " on " + shard + " could not be read: "
                                + e.getMessage(),
                        e);
            }
        }
        return positions;
    }

    private static List<ConsumerPosition> positions(Connection connection, Shard shard, int streamId, String consumer)
            throws SQLException {
        OptionalInt id = shard.tables().consumers().id(connection, streamId, consumer);
        if (id.isEmpty()) {
            return List.of();
        }
        // Offsets first: read the other way round, an offset could be beyond its head.
        List<Offset> offsets = shard.tables().consumers().offsets(connection, id.getAsInt());
        List<Head> heads = shard.tables().partitions().heads(connection, new int[] {streamId});
        return offsets.stream()
                .map(o -> {
                    Head head = heads.get(o.partition());
                    return new ConsumerPosition(
                            shard.number(), o.partition(), o.nextOffset(), head.head(), head.logStart(), o.epoch());
                })
                .toList();
    }

    /**
     * Closes all members at the same time, then the threads they share.
     *
     * @return whether all handlers ended in time
     */
    public boolean close(long deadlineNanos) throws InterruptedException {
        synchronized (this) {
            closed = true;
        }
        boolean ended = true;
        members.forEach(Member::beginClose);
        for (Member member : members) {
            ended &= member.awaitClosed(deadlineNanos);
        }
        List<ShardThreads> all;
        synchronized (this) {
            all = List.copyOf(onShards.values());
        }
        for (ShardThreads onShard : all) {
            onShard.keeper().close();
            onShard.fetcher().close();
            onShard.committer().close();
        }
        return ended;
    }
}
