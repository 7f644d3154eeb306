package io.eventsql.spring.internal.actuate;

import io.eventsql.BufferState;
import io.eventsql.ConsumerSpec;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.PartitionState;
import io.eventsql.ShardInfo;
import io.eventsql.Subscription;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.health.contributor.Status;

/**
 * Up while every shard is available, every consumer of this process runs, and no thread of the library fails. Lists the partitions that a failure has
 * stopped, with a configurable status. Responds within its timeout, whatever a pool or a database does. Thread-safe.
 */
public final class EventSqlHealthIndicator implements HealthIndicator {
    private static final int VALIDATION_TIMEOUT_S = 2;

    private final EventSql eventSql;
    private final Duration timeout;
    private final Status statusIfStopped;
    private final DelayedPartitions delayedPartitions;
    private final Map<String, BoundedCheck<Boolean>> shards = new LinkedHashMap<>();
    private final BoundedCheck<Map<String, List<String>>> stopped;

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
        this.stopped = new BoundedCheck<>("consumers", this::stoppedPartitions);
    }

    @Override
    public Health health() {
        long deadline = BoundedCheck.deadline(timeout);
        Map<String, BoundedCheck.Pending<Boolean>> checks = new LinkedHashMap<>();
        shards.forEach((name, check) -> checks.put(name, check.start()));
        BoundedCheck.Pending<Map<String, List<String>>> stoppedCheck = stopped.start();

        Health.Builder health = Health.up();
        addStopped(health, stoppedCheck, deadline);
        Map<String, String> openCircuitBreakers = delayedPartitions.openCircuitBreakers();
        if (!openCircuitBreakers.isEmpty()) {
            health.status(statusIfStopped).withDetail("openCircuitBreakers", openCircuitBreakers);
        }
        Map<String, String> blocked = delayedPartitions.blocked();
        if (!blocked.isEmpty()) {
            health.withDetail("blockedPartitions", blocked);
        }
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
                    name(subscription.spec()),
                    status.getCode(),
                    (one, other) -> one.equals(Status.DOWN.getCode()) ? one : other);
        }
        return consumers;
    }

    private void addStopped(
            Health.Builder health, BoundedCheck.Pending<Map<String, List<String>>> check, long deadline) {
        try {
            Map<String, List<String>> found = check.await(deadline);
            health.withDetail("stoppedPartitions", found);
            if (!found.isEmpty()) {
                health.status(statusIfStopped);
            }
        } catch (TimeoutException | ExecutionException e) { // the shard that causes it is DOWN
            health.withDetail("stoppedPartitions", "unknown");
        }
    }

    private Map<String, List<String>> stoppedPartitions() {
        Map<String, List<String>> found = new TreeMap<>();
        for (Subscription subscription : eventSql.subscriptions()) {
            ConsumerSpec spec = subscription.spec();
            if (!found.containsKey(name(spec))) {
                found.put(name(spec), stoppedPartitions(spec));
            }
        }
        found.values().removeIf(List::isEmpty);
        return found;
    }

    /** @throws EventSqlException if a shard is unavailable */
    private List<String> stoppedPartitions(ConsumerSpec spec) {
        List<String> found = new ArrayList<>();
        for (PartitionState state :
                eventSql.consumer(spec.stream(), spec.name()).state()) {
            if (state.status() == PartitionState.Status.STOPPED) {
                found.add("shard " + shardName(state.shard()) + ", partition " + state.partition() + " at offset "
                        + state.nextOffset() + ": " + state.error());
            }
        }
        return found;
    }

    private String shardName(int shard) {
        return eventSql.buffers().get(shard).name();
    }

    private static String name(ConsumerSpec spec) {
        return spec.stream() + "/" + spec.name();
    }
}
