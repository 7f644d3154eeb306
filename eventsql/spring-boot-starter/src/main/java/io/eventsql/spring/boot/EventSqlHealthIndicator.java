package io.eventsql.spring.boot;

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
 * Up while every shard answers and every consumer of this process takes part; partitions that are stopped by a failure are
 * shown, with a status of the application's choice. Answers within its time-out, whatever a pool or a database does.
 * Thread-safe.
 */
public final class EventSqlHealthIndicator implements HealthIndicator {
    private static final int ANSWER_SECONDS = 2;

    private final EventSql eventSql;
    private final Duration timeout;
    private final Status statusIfStopped;
    private final Map<String, BoundedCheck<Boolean>> shards = new LinkedHashMap<>();
    private final BoundedCheck<Map<String, List<String>>> stopped;

    /** @param statusIfStopped the status while a partition of a consumer of this process is stopped */
    public EventSqlHealthIndicator(EventSql eventSql, Duration timeout, Status statusIfStopped) {
        this.eventSql = eventSql;
        this.timeout = timeout;
        this.statusIfStopped = statusIfStopped;
        for (BufferState shard : eventSql.buffers()) {
            shards.put(shard.name(), new BoundedCheck<>(shard.name(), () -> answers(shard.shard())));
        }
        this.stopped = new BoundedCheck<>("consumers", this::stoppedPartitions);
    }

    @Override
    public Health health() {
        long deadline = BoundedCheck.deadline(timeout);
        Map<String, BoundedCheck.Answer<Boolean>> asked = new LinkedHashMap<>();
        shards.forEach((name, check) -> asked.put(name, check.start()));
        BoundedCheck.Answer<Map<String, List<String>>> askedForStopped = stopped.start();

        Health.Builder health = Health.up();
        addStopped(health, askedForStopped, deadline);
        Map<String, String> answers = new LinkedHashMap<>();
        asked.forEach((name, answer) -> answers.put(name, answer(answer, deadline)));
        Map<String, String> consumers = consumers();
        if (!answers.values().stream().allMatch(Status.UP.getCode()::equals)
                || consumers.containsValue(Status.DOWN.getCode())) {
            health.down();
        }
        return health.withDetail("shards", answers)
                .withDetail("consumers", consumers)
                .build();
    }

    private String answer(BoundedCheck.Answer<Boolean> answer, long deadline) {
        try {
            return answer.await(deadline) ? Status.UP.getCode() : "DOWN: the connection is not valid";
        } catch (TimeoutException e) {
            return "DOWN: no answer within " + timeout.toMillis() + " ms";
        } catch (ExecutionException e) {
            return "DOWN: " + e.getCause();
        }
    }

    private boolean answers(int shard) throws SQLException {
        Optional<ShardInfo> known = eventSql.shards().stream()
                .filter(info -> info.number() == shard)
                .findFirst();
        if (known.isEmpty()) {
            throw new SQLException("has not answered since this process was started");
        }
        try (Connection connection = known.get().dataSource().getConnection()) {
            return connection.isValid(ANSWER_SECONDS);
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
            Health.Builder health, BoundedCheck.Answer<Map<String, List<String>>> asked, long deadline) {
        try {
            Map<String, List<String>> found = asked.await(deadline);
            health.withDetail("stoppedPartitions", found);
            if (!found.isEmpty()) {
                health.status(statusIfStopped);
            }
        } catch (TimeoutException | ExecutionException e) { // the shard that is the reason is down
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

    /** @throws EventSqlException if a shard does not answer */
    private List<String> stoppedPartitions(ConsumerSpec spec) {
        List<String> found = new ArrayList<>();
        for (PartitionState state :
                eventSql.consumer(spec.stream(), spec.name()).state()) {
            if (state.status() == PartitionState.Status.STOPPED) {
                found.add("shard " + state.shard() + ", partition " + state.partition() + " at offset "
                        + state.nextOffset() + ": " + state.error());
            }
        }
        return found;
    }

    private static String name(ConsumerSpec spec) {
        return spec.stream() + "/" + spec.name();
    }
}
