package io.eventsql.internal.pool;

import io.eventsql.ConsumerSpec;
import io.eventsql.InvalidInputException;
import io.eventsql.Settings;
import io.eventsql.Subscription;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.function.Supplier;
import java.util.function.ToIntFunction;
import java.util.stream.Collectors;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Compares the sizes of the connection pools with the number of connections that this instance uses. Thread-safe.
 *
 * <p>There are two numbers. The <em>required</em> one is the sum of those that are kept for long, for listening and by
 * handlers in their transactions, and one for all other work, each step of which borrows one connection at a time. With
 * fewer connections that work could wait indefinitely, so a consumer that needs more is refused. The <em>maximum</em> is the
 * number that may be in use at the same time. With fewer connections work waits for work: publishing is slower, and a hung
 * append delays the renewal of leases. That is reported by a warning.
 */
public final class PoolCheck {
    /** A smaller pool has no connection to spare on which the relay could listen for signals: it polls. */
    public static final int RELAY_LISTENS_FROM = 3;

    private static final Logger LOG = LoggerFactory.getLogger(PoolCheck.class);

    private final Settings settings;
    private final Supplier<Map<String, DataSource>> shards;
    private final Map<String, DataSource> outboxes;
    private final ToIntFunction<String> partitions;
    private final boolean hasReplicas;
    private final List<Member> members = new ArrayList<>();
    /** The number of connections that a warning has reported, by the pool's name. */
    private final Map<String, Integer> reported = new HashMap<>();
    /** The pools whose size is reported as unknown. */
    private final Set<String> unknown = new HashSet<>();

    /** A member that uses connections; {@code subscription} is {@code null} while it starts. */
    private static final class Member {
        private final int transactions;
        private volatile @Nullable Subscription subscription;

        Member(int transactions) {
            this.transactions = transactions;
        }

        boolean hasEnded() {
            Subscription started = subscription;
            return started != null && !started.isRunning();
        }
    }

    /** A number of connections, and what they are used for. */
    private record Use(int connections, String purpose) {
        static int sum(List<Use> uses) {
            return uses.stream().mapToInt(Use::connections).sum();
        }

        static String describe(List<Use> uses) {
            return uses.stream()
                    .filter(use -> use.connections() > 0)
                    .map(use -> use.connections() + " " + use.purpose())
                    .collect(Collectors.joining(", "));
        }
    }

    /**
     * @param shards returns the data sources of all shards by name, also of those that are not available yet
     * @param outboxes the data sources of the standalone outboxes by name
     * @param partitions returns the number of partitions of a stream
     * @param hasReplicas whether shards have replicas, whose pools are not checked
     */
    public PoolCheck(
            Settings settings,
            Supplier<Map<String, DataSource>> shards,
            Map<String, DataSource> outboxes,
            ToIntFunction<String> partitions,
            boolean hasReplicas) {
        this.settings = settings;
        this.shards = shards;
        this.outboxes = Map.copyOf(outboxes);
        this.partitions = partitions;
        this.hasReplicas = hasReplicas;
    }

    /**
     * Warns of pools that are small. None is too small for a publisher and a relay: they need one connection, and every pool
     * has that.
     */
    public synchronized void check() {
        warn();
    }

    /**
     * Starts a member if the pools are large enough for it.
     *
     * @throws InvalidInputException if a pool is too small: nothing was started
     */
    public Subscription start(ConsumerSpec spec, boolean transactional, Supplier<Subscription> starter) {
        int transactions = transactional
                ? Math.min(spec.concurrency(), Math.min(spec.maxPartitions(), partitions.applyAsInt(spec.stream())))
                : 0;
        Member member = new Member(transactions);
        synchronized (this) {
            members.removeIf(Member::hasEnded);
            members.add(member); // before it starts, because others may start at the same time
            try {
                requireConnections();
            } catch (InvalidInputException e) {
                members.remove(member);
                throw e;
            }
            warn();
        }
        try {
            Subscription started = starter.get();
            member.subscription = started;
            return started;
        } catch (RuntimeException | Error e) {
            synchronized (this) {
                members.remove(member);
            }
            throw e;
        }
    }

    private int transactions() {
        return members.stream().mapToInt(member -> member.transactions).sum();
    }

    private void requireConnections() {
        List<Use> uses = new ArrayList<>();
        uses.add(new Use(1, "shared by publishing, relaying, fetching, committing offsets and renewing leases"));
        uses.add(new Use(1, "to listen for signals"));
        uses.add(new Use(transactions(), "for transactional handlers"));
        if (Use.sum(uses) >= RELAY_LISTENS_FROM) {
            uses.add(new Use(1, "to listen for signals of the outbox"));
        }
        shards.get().forEach((name, pool) -> {
            OptionalInt size = PoolSize.max(pool);
            if (size.isPresent() && size.getAsInt() < Use.sum(uses)) {
                throw new InvalidInputException(
                        "dataSource[" + name + "]",
                        "is a pool of " + size.getAsInt() + " connections, but at least " + Use.sum(uses)
                                + " are needed, plus those of the application: " + Use.describe(uses)
                                + ". Increase its maximum size, or lower concurrency or maxPartitions of the"
                                + " transactional consumers");
            }
        });
    }

    private void warn() {
        Map<String, DataSource> pools = shards.get();
        int otherShards = pools.size() - 1;
        List<Use> ofShard = List.of(
                new Use(settings.appendConnections(), "to append"),
                new Use(1, "to send signals"),
                new Use(1, "for background work"),
                new Use(2, "to relay the outbox"), // to move events, and to listen for signals
                new Use(2 * otherShards + outboxes.size(), "to transfer events of outboxes"),
                // To listen for signals, to fetch, to commit offsets, and to renew leases.
                new Use(members.isEmpty() ? 0 : 4, "to consume"),
                new Use(hasReplicas && !members.isEmpty() ? 1 : 0, "to compare heads for replicas"),
                new Use(hasReplicas ? 1 : 0, "to measure the lag of replicas"),
                new Use(transactions(), "for transactional handlers"));
        pools.forEach((name, pool) -> warn("shard " + name, pool, ofShard));
        List<Use> ofOutbox =
                List.of(new Use(2, "to relay the outbox"), new Use(pools.size(), "to transfer events of outboxes"));
        outboxes.forEach((name, pool) -> warn("outbox " + name, pool, ofOutbox));
    }

    private void warn(String name, DataSource pool, List<Use> uses) {
        OptionalInt size = PoolSize.max(pool);
        int used = Use.sum(uses);
        if (size.isEmpty()) {
            if (unknown.add(name)) {
                LOG.warn(
                        "The size of the pool of {} could not be determined ({}). It is not checked: up to {} connections"
                                + " are used, 4 more once this process consumes, and one for each transactional handler",
                        name,
                        pool.getClass().getName(),
                        used);
            }
            return;
        }
        if (size.getAsInt() < used && used > reported.getOrDefault(name, 0)) {
            reported.put(name, used);
            LOG.warn(
                    "The pool of {} has {} connections, but up to {} are used at the same time, plus those of the"
                            + " application: {}. Increase its maximum size, otherwise publishing and consuming wait for"
                            + " connections",
                    name,
                    size.getAsInt(),
                    used,
                    Use.describe(uses));
        }
    }
}
