package io.eventsql.internal.pool;

import io.eventsql.ConsumerSpec;
import io.eventsql.Settings;
import io.eventsql.ShardInfo;
import io.eventsql.Subscription;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.function.Supplier;
import java.util.function.ToIntFunction;
import javax.sql.DataSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Warns if a connection pool is smaller than the number of connections that this instance may use at the same time: once
 * when the instance is created, and again when a consumer increases that number. Thread-safe.
 *
 * <p>A pool that is too small does not lose events, but work waits for a connection: publishers time out, and leases are
 * renewed too late.
 */
public final class PoolCheck {
    private static final Logger LOG = LoggerFactory.getLogger(PoolCheck.class);
    private static final int SIGNAL = 1;
    private static final int BACKGROUND = 1;
    /** To move events, and to listen for signals. */
    private static final int RELAY = 2;
    /** To listen for signals, to fetch, to commit offsets, and to renew leases. */
    private static final int CONSUME = 4;

    private final Settings settings;
    private final int shardCount;
    private final Supplier<List<ShardInfo>> shards;
    private final Map<String, DataSource> outboxes;
    private final ToIntFunction<String> partitions;
    private final List<Member> members = new ArrayList<>();
    /** The number of connections that a warning has reported, by the pool's role. */
    private final Map<String, Integer> reported = new HashMap<>();

    private record Member(Subscription subscription, int transactions) {}

    /**
     * @param shardCount the number of shards of the cluster
     * @param shards returns the shards that have been available
     * @param outboxes the data sources of the standalone outboxes by name
     * @param partitions returns the number of partitions of a stream
     */
    public PoolCheck(
            Settings settings,
            int shardCount,
            Supplier<List<ShardInfo>> shards,
            Map<String, DataSource> outboxes,
            ToIntFunction<String> partitions) {
        this.settings = settings;
        this.shardCount = shardCount;
        this.shards = shards;
        this.outboxes = Map.copyOf(outboxes);
        this.partitions = partitions;
    }

    /** Checks the pools after a member was started. */
    public void checkStarted(Subscription subscription, boolean transactional) {
        ConsumerSpec spec = subscription.spec();
        int transactions = transactional
                ? Math.min(spec.concurrency(), Math.min(spec.maxPartitions(), partitions.applyAsInt(spec.stream())))
                : 0;
        synchronized (this) {
            members.removeIf(member -> !member.subscription().isRunning());
            members.add(new Member(subscription, transactions));
        }
        check();
    }

    /** Checks all pools. */
    public synchronized void check() {
        Map<String, Integer> ofShard = new LinkedHashMap<>();
        ofShard.put("to append", settings.appendConnections());
        ofShard.put("to send signals", SIGNAL);
        ofShard.put("for background work", BACKGROUND);
        ofShard.put("to relay the outbox", RELAY);
        ofShard.put("to transfer events of outboxes", 2 * (shardCount - 1) + outboxes.size());
        ofShard.put("to consume", members.isEmpty() ? 0 : CONSUME);
        ofShard.put(
                "for transactional handlers",
                members.stream().mapToInt(Member::transactions).sum());
        shards.get().forEach(shard -> check("shard " + shard.name(), shard.dataSource(), ofShard));

        Map<String, Integer> ofOutbox = new LinkedHashMap<>();
        ofOutbox.put("to relay the outbox", RELAY);
        ofOutbox.put("to transfer events of outboxes", shardCount);
        outboxes.forEach((name, pool) -> check("outbox " + name, pool, ofOutbox));
    }

    private void check(String role, DataSource pool, Map<String, Integer> uses) {
        OptionalInt size = PoolSize.max(pool);
        int needed = uses.values().stream().mapToInt(Integer::intValue).sum();
        if (size.isEmpty() || size.getAsInt() >= needed || needed <= reported.getOrDefault(role, 0)) {
            return;
        }
        reported.put(role, needed);
        List<String> details = new ArrayList<>();
        uses.forEach((use, connections) -> {
            if (connections > 0) {
                details.add(connections + " " + use);
            }
        });
        LOG.warn(
                "The pool of {} has {} connections, but up to {} are needed, plus those of the application: {}."
                        + " Increase its maximum size, otherwise publishing and consuming wait for connections",
                role,
                size.getAsInt(),
                needed,
                String.join(", ", details));
    }
}
