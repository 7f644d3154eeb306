package io.eventsql.move;

import static io.eventsql.move.MoveCluster.KEYS;
import static io.eventsql.move.MoveCluster.STREAM;
import static io.eventsql.move.MoveCluster.assertHandledInOrder;
import static io.eventsql.move.MoveCluster.publish;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerControl;
import io.eventsql.ConsumerSpec;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.Growth.ShardGrowth;
import io.eventsql.RetryPolicy;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Seeds;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: whatever is parked, redriven and moved between shards and partitions, and whichever process has these, the events of each
 * key are handled once and in order.
 *
 * <p>Method: at random, keys fail or no longer fail, parked events are redriven, shards join and leave, the stream grows, and members
 * end and start.
 * In the end nothing fails, and everything is redriven. {@code -Deventsql.test.seed=N} repeats the choices.
 */
@Timeout(300)
class ParkedKeysMoveModelIT {
    private static final int ROUNDS = Integer.getInteger("eventsql.test.parkedRounds", 8);
    private static final int ROUND_EVENTS = 60;
    private static final int FAILING_KEYS_MAX = 8;
    private static final int GROWN_PARTITIONS_MAX = 20;
    private static final List<List<Integer>> TARGETS =
            List.of(List.of(0), List.of(1), List.of(2), List.of(0, 1), List.of(1, 2), List.of(0, 2), List.of(0, 1, 2));

    private final Set<String> failing = ConcurrentHashMap.newKeySet();
    private final Handled handled = new Handled();

    private void handle(StoredEvent event) {
        if (failing.contains(event.key())) {
            throw new IllegalStateException("fails");
        }
        handled.add(event);
    }

    private Subscription subscribe(EventSql eventSql) {
        return eventSql.subscribe(
                ConsumerSpec.of(STREAM, "c")
                        .withFailurePolicy(FailurePolicy.PARK_KEY)
                        .withRetry(RetryPolicy.defaults().withMaxAttempts(1)),
                this::handle);
    }

    /** Gives the shards as many partitions as one of them has, and another one. */
    private static void grow(EventSql eventSql) {
        int most = eventSql.previewGrowth(STREAM, StreamSpec.PARTITIONS_MAX).shards().stream()
                .mapToInt(ShardGrowth::partitions)
                .max()
                .orElseThrow();
        if (most < GROWN_PARTITIONS_MAX) { // a shard that gets keys back gets as many partitions again as it has
            eventSql.grow(STREAM, most + 1);
        }
    }

    @Test
    void redriveAndMove_random_keysStayInOrder() {
        Random random = Seeds.random("ParkedKeysMoveModelIT");
        try (MoveCluster cluster = new MoveCluster(3)) {
            cluster.create(1);
            EventSql eventSql = cluster.open(3);
            ConsumerControl control = eventSql.consumer(STREAM, "c");
            List<Subscription> members = new ArrayList<>();
            int published = 0;
            for (int round = 0; round < ROUNDS; round++) {
                publish(eventSql, STREAM, published, published += ROUND_EVENTS);
                failing.removeIf(key -> random.nextInt(3) == 0);
                while (failing.size() < random.nextInt(FAILING_KEYS_MAX)) {
                    failing.add("key-" + random.nextInt(KEYS));
                }
                if (members.size() == 2 || (members.size() == 1 && random.nextInt(4) == 0)) {
                    members.removeFirst().close();
                } else {
                    members.add(subscribe(cluster.open(3)));
                }
                if (random.nextInt(2) == 0) {
                    eventSql.moveShards(TARGETS.get(random.nextInt(TARGETS.size())));
                }
                if (random.nextInt(4) == 0) {
                    grow(eventSql);
                }
                publish(eventSql, STREAM, published, published += ROUND_EVENTS);
                int events = published;
                if (random.nextInt(3) > 0 && !members.isEmpty()) {
                    await().atMost(Duration.ofSeconds(90))
                            .until(() -> handled.size()
                                            + control.parkedEvents(10_000).size()
                                    == events);
                }
                if (random.nextInt(3) == 0) {
                    control.redrive();
                }
            }
            failing.clear();
            members.add(subscribe(eventSql));
            int events = published;
            await().atMost(Duration.ofSeconds(120)).until(() -> {
                control.redrive();
                return handled.size() >= events;
            });
            await().untilAsserted(() ->
                    assertThat(control.state()).allMatch(state -> state.parkedKeys() == 0 && state.lag() == 0));
            assertHandledInOrder(handled, 0, published);
            members.forEach(Subscription::close);
        }
    }
}
