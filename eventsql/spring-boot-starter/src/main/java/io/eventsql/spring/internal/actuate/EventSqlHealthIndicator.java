package io.eventsql.spring.internal.actuate;

import io.eventsql.BufferState;
import io.eventsql.ConsumerOverview;
import io.eventsql.ConsumerStatus;
import io.eventsql.EventSql;
import io.eventsql.PartitionState;
import io.eventsql.ReplicaStatus;
import io.eventsql.ShardInfo;
import io.eventsql.ShardMove;
import io.eventsql.Subscription;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.health.contributor.Status;

/**
 * Up while every shard is available, every consumer of this process runs, and no thread of the library fails. Lists the
 * partitions that a failure has stopped, and the consumers of other processes that are stopped or behind without a member;
 * only those of this process have an effect on the status, which is configurable. Responds within its timeout, whatever a pool or a database does. Thread-safe.
 */
public final class EventSqlHealthIndicator implements HealthIndicator {
    private static final int VALIDATION_TIMEOUT_S = 2;
    /** The largest number of consumers, and of partitions of each, in one detail. */
    private static final int LISTED_MAX = 100;

    private final EventSql eventSql;
    private final Duration timeout;
    private final Status statusIfStopped;
    private final DelayedPartitions delayedPartitions;
    private final Map<String, BoundedCheck<Boolean>> shards = new LinkedHashMap<>();
    private final BoundedCheck<ConsumerOverview> allConsumers;
    private final BoundedCheck<Optional<ShardMove>> shardMove;

    /**
     * @param statusIfStopped the status while a partition of a consumer of this process is stopped or its circuit breaker is
     *     open
     */
    public EventSqlHealthIndicator(
            EventSql eventSql, Duration timeout, Status statusIfStopped, DelayedPartitions delayedPartitions) {
        this.delayedPartitions = delayedPartitions;
        this.eventSql = eventSql;
        this.timeout = timeout;
        this.statusIfStopped = statusIfStopped;
        for (BufferState shard : eventSql.buffers()) {
            shards.put(shard.name(), new BoundedCheck<>(shard.name(), () -> isAvailable(shard.shard())));
        }
        this.allConsumers = new BoundedCheck<>("consumers", eventSql::consumers);
        this.shardMove = new BoundedCheck<>("shard-move", eventSql::currentShardMove);
    }

    @Override
    public Health health() {
        long deadline = BoundedCheck.deadline(timeout);
        Map<String, BoundedCheck.Pending<Boolean>> checks = new LinkedHashMap<>();
        shards.forEach((name, check) -> checks.put(name, check.start()));
        BoundedCheck.Pending<ConsumerOverview> consumersCheck = allConsumers.start();
        BoundedCheck.Pending<Optional<ShardMove>> moveCheck = shardMove.start();

        Health.Builder health = Health.up();
        addConsumers(health, consumersCheck, deadline);
        Map<String, String> openCircuitBreakers = delayedPartitions.openCircuitBreakers();
        if (!openCircuitBreakers.isEmpty()) {
            health.status(statusIfStopped).withDetail("openCircuitBreakers", openCircuitBreakers);
        }
        Map<String, String> blocked = delayedPartitions.blocked();
        if (!blocked.isEmpty()) {
            health.withDetail("blockedPartitions", blocked);
        }
        addUnlessEmpty(health, "replicas", replicas());
        addMove(health, moveCheck, deadline);
        Map<String, String> statuses = new LinkedHashMap<>();
        checks.forEach((name, check) -> statuses.put(name, status(check, deadline)));
        Map<String, String> consumers = consumers();
        Map<String, String> failingThreads = new TreeMap<>();
        EventSql.threadFailures().forEach((thread, failure) -> failingThreads.put(thread, failure.toString()));
        if (!statuses.values().stream().allMatch(Status.UP.getCode()::equals)
                || consumers.containsValue(Status.DOWN.getCode())
                || !failingThreads.isEmpty()) {
            health.down();
        }
        if (!failingThreads.isEmpty()) {
            health.withDetail("failingThreads", failingThreads);
        }
        return health.withDetail("shards", statuses)
                .withDetail("consumers", consumers)
                .build();
    }

    /** A move is continued by no process by itself. If a shard is unavailable, that is shown as such. */
    private static void addMove(Health.Builder health, BoundedCheck.Pending<Optional<ShardMove>> check, long deadline) {
        try {
            check.await(deadline)
                    .ifPresent(move -> health.withDetail(
                            "shardMove",
                            "keys are being moved to the shards " + move.shards() + " (" + move.state()
                                    + "); complete that with moveShards"
                                    + (move.state() == ShardMove.State.PREPARING
                                            ? ", or cancel it with cancelShardMove"
                                            : "")));
        } catch (TimeoutException | ExecutionException e) {
            health.withDetail("shardMove", "unknown");
        }
    }

    /** A replica that is not used is no failure: its readers read from the primary. */
    private Map<String, String> replicas() {
        Map<String, String> replicas = new LinkedHashMap<>();
        for (ReplicaStatus replica : eventSql.replicas()) {
            Duration lag = replica.lag();
            String problem = replica.problem();
            replicas.put(
                    replica.name(),
                    (replica.isUsed() ? "used, " : "not used, ")
                            + (lag == null ? "lag unknown" : lag.toMillis() + " ms behind")
                            + (problem == null ? "" : ": " + problem));
        }
        return replicas;
    }

    private String status(BoundedCheck.Pending<Boolean> check, long deadline) {
        try {
            return check.await(deadline) ? Status.UP.getCode() : "DOWN: the connection is not valid";
        } catch (TimeoutException e) {
            return "DOWN: no response within " + timeout.toMillis() + " ms";
        } catch (ExecutionException e) {
            return "DOWN: " + e.getCause();
        }
    }

    private boolean isAvailable(int shard) throws SQLException {
        Optional<ShardInfo> known = eventSql.shards().stream()
                .filter(info -> info.number() == shard)
                .findFirst();
        if (known.isEmpty()) {
            throw new SQLException("unavailable since this process was started");
        }
        try (Connection connection = known.get().dataSource().getConnection()) {
            return connection.isValid(VALIDATION_TIMEOUT_S);
        }
    }

    /** A consumer with several members in this process is up if all of them are. */
    private Map<String, String> consumers() {
        Map<String, String> consumers = new TreeMap<>();
        for (Subscription subscription : eventSql.subscriptions()) {
            Status status = subscription.isRunning() ? Status.UP : Status.DOWN;
            consumers.merge(
                    name(subscription.spec().stream(), subscription.spec().name()),
                    status.getCode(),
                    (one, other) -> one.equals(Status.DOWN.getCode()) ? one : other);
        }
        return consumers;
    }

    private void addConsumers(Health.Builder health, BoundedCheck.Pending<ConsumerOverview> check, long deadline) {
        try {
            ConsumerOverview overview = check.await(deadline);
            Set<String> own = eventSql.subscriptions().stream()
                    .map(subscription -> name(
                            subscription.spec().stream(), subscription.spec().name()))
                    .collect(Collectors.toSet());
            Map<String, List<String>> stopped = new TreeMap<>();
            Map<String, List<String>> stoppedElsewhere = new TreeMap<>();
            Map<String, List<String>> waiting = new TreeMap<>();
            Map<String, String> withoutMembers = new TreeMap<>();
            for (ConsumerStatus consumer : overview.consumers()) {
                String name = name(consumer.stream(), consumer.consumer());
                boolean isOwn = own.contains(name);
                if (consumer.partitions(PartitionState.Status.STOPPED) > 0) {
                    put(isOwn ? stopped : stoppedElsewhere, name, stoppedPartitions(consumer));
                }
                List<String> waitingOfConsumer = waitingPartitions(consumer);
                if (!waitingOfConsumer.isEmpty()) {
                    put(waiting, name, waitingOfConsumer);
                }
                if (!isOwn && consumer.members().isEmpty() && consumer.lag() > 0) {
                    put(
                            withoutMembers,
                            name,
                            consumer.lag() + " events behind, the oldest for "
                                    + consumer.behind().toSeconds() + " s");
                }
            }
            health.withDetail("stoppedPartitions", stopped);
            if (!stopped.isEmpty()) {
                health.status(statusIfStopped);
            }
            addUnlessEmpty(health, "stoppedPartitionsOfOtherProcesses", stoppedElsewhere);
            addUnlessEmpty(health, "consumersWithoutMembers", withoutMembers);
            addUnlessEmpty(health, "waitingPartitions", waiting);
            addUnlessEmpty(health, "consumersUnknown", overview.unavailableShards());
        } catch (TimeoutException | ExecutionException e) { // the shard that causes it is DOWN
            health.withDetail("stoppedPartitions", "unknown");
        }
    }

    private static <T> void put(Map<String, T> details, String name, T detail) {
        if (details.size() < LISTED_MAX) {
            details.put(name, detail);
        }
    }

    private static void addUnlessEmpty(Health.Builder health, String name, Map<String, ?> detail) {
        if (!detail.isEmpty()) {
            health.withDetail(name, detail);
        }
    }

    private List<String> stoppedPartitions(ConsumerStatus consumer) {
        return consumer.partitions().stream()
                .filter(state -> state.status() == PartitionState.Status.STOPPED)
                .map(state -> "shard " + shardName(state.shard()) + ", partition " + state.partition() + " at offset "
                        + state.nextOffset() + ": " + state.error())
                .limit(LISTED_MAX)
                .toList();
    }

    /** Partitions that wait until others are handled, since their stream has grown: one that is stopped holds them back. */
    private List<String> waitingPartitions(ConsumerStatus consumer) {
        return consumer.partitions().stream()
                .filter(state -> state.status() == PartitionState.Status.RUNNING
                        && state.member() == null
                        && state.error() != null)
                .map(state ->
                        "shard " + shardName(state.shard()) + ", partition " + state.partition() + " " + state.error())
                .limit(LISTED_MAX)
                .toList();
    }

    private String shardName(int shard) {
        return eventSql.buffers().stream()
                .filter(buffer -> buffer.shard() == shard)
                .map(BufferState::name)
                .findFirst()
                .orElse("shard" + shard);
    }

    private static String name(String stream, String consumer) {
        return stream + "/" + consumer;
    }
}
