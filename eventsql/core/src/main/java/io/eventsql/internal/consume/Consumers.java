package io.eventsql.internal.consume;

import io.eventsql.ConsumerPosition;
import io.eventsql.ConsumerSpec;
import io.eventsql.EventBatchHandler;
import io.eventsql.EventHandler;
import io.eventsql.EventSqlException;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.internal.consume.Dispatcher.PageHandler;
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
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The members of this process, and the fetchers and committers they share: one of each for each shard. Thread-safe. */
public final class Consumers {
    private final Shards shards;
    private final StreamRegistry streams;
    private final Settings settings;
    private final WakeUp wakeUp;
    private final Map<Shard, Fetcher> fetchers = new HashMap<>();
    private final Map<Shard, OffsetCommitter> committers = new HashMap<>();
    private final Set<Member> members = ConcurrentHashMap.newKeySet();
    private boolean closed;

    public Consumers(Shards shards, StreamRegistry streams, Settings settings, WakeUp wakeUp) {
        this.shards = shards;
        this.streams = streams;
        this.settings = settings;
        this.wakeUp = wakeUp;
    }

    public Subscription subscribe(ConsumerSpec spec, EventHandler handler) {
        return start(spec, PageHandler.ofSingle(handler));
    }

    public Subscription subscribeBatch(ConsumerSpec spec, EventBatchHandler handler) {
        return start(spec, PageHandler.ofBatch(handler));
    }

    private Subscription start(ConsumerSpec spec, PageHandler handler) {
        StreamSpec stream = streams.require(spec.stream());
        Member member;
        synchronized (this) {
            if (closed) {
                throw new EventSqlException("EventSQL is closed");
            }
            member = new Member(spec, stream, new Dispatcher(spec, handler), this, settings.closeTimeout());
            members.add(member);
        }
        shards.all().forEach(member::join);
        return member;
    }

    synchronized Fetcher fetcher(Shard shard) {
        return fetchers.computeIfAbsent(shard, s -> {
            Fetcher fetcher = new Fetcher(s, settings.pollInterval(), committer(s));
            wakeUp.register(s, fetcher);
            return fetcher;
        });
    }

    synchronized OffsetCommitter committer(Shard shard) {
        return committers.computeIfAbsent(shard, OffsetCommitter::new);
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
                int streamId = shard.streamId(spec);
                positions.addAll(shard.require().call(c -> positions(c, shard, streamId, consumer)));
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
        // Offsets first: read the other way round, an offset could be beyond its head.
        List<Offset> offsets = shard.tables().consumers().offsets(connection, streamId, consumer);
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
     * Closes all members, then the threads they share.
     *
     * @return whether all handlers ended in time
     */
    public boolean close(long deadlineNanos) throws InterruptedException {
        synchronized (this) {
            closed = true;
        }
        boolean ended = true;
        for (Member member : members) {
            ended &= member.close(Duration.ofNanos(Math.max(0, deadlineNanos - System.nanoTime())));
        }
        List<Fetcher> allFetchers;
        List<OffsetCommitter> allCommitters;
        synchronized (this) {
            allFetchers = List.copyOf(fetchers.values());
            allCommitters = List.copyOf(committers.values());
        }
        for (Fetcher fetcher : allFetchers) {
            fetcher.close();
        }
        for (OffsetCommitter committer : allCommitters) {
            committer.close();
        }
        return ended;
    }
}
