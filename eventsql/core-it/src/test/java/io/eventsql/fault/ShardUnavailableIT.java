package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventOutcomeUnknownException;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.RetryPolicy;
import io.eventsql.Settings;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.fixture.proxy.ProxiedDatabase;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Goal: an unavailable shard does not block another one, and its recovery is detected.
 *
 * <p>Method: a proxy drops all traffic to one of two shards while events are published and consumed.
 */
class ShardUnavailableIT {
    private final List<AutoCloseable> open = new ArrayList<>();

    @AfterEach
    void closeAll() throws Exception {
        for (AutoCloseable closeable : open.reversed()) {
            closeable.close();
        }
    }

    private <T extends AutoCloseable> T opened(T closeable) {
        open.add(closeable);
        return closeable;
    }

    private ProxiedDatabase proxied() throws SQLException {
        return opened(ProxiedDatabase.on(TestCluster.server()));
    }

    @Test
    void publishAndConsume_oneOfTwoShardsUnavailable_theOtherContinuesAndItCatchesUp() throws Exception {
        List<ProxiedDatabase> databases = List.of(proxied(), proxied());
        EventSql eventSql = opened(
                EventSql.builder(databases.stream().map(ProxiedDatabase::pool).toList())
                        .settings(Settings.builder()
                                .networkTimeout(Duration.ofMillis(500))
                                .publishTimeout(Duration.ofSeconds(3))
                                .build())
                        .build());
        eventSql.createStream(TestStreams.of("sharded").withPartitions(2));
        Map<String, Integer> handledOn = new ConcurrentHashMap<>();
        Queue<String> handledTwice = new ConcurrentLinkedQueue<>();
        eventSql.subscribe(ConsumerSpec.of("sharded", "reader"), event -> {
            if (handledOn.put(event.text(), event.shard()) != null) {
                handledTwice.add(event.text());
            }
        });
        Map<String, Integer> shardOfKey = new HashMap<>();
        for (int i = 0; i < 30; i++) {
            EventPosition position = eventSql.publisher().publish("sharded", Event.ofText("k" + i, "before" + i));
            shardOfKey.put("k" + i, position.shard());
        }
        assertThat(new HashSet<>(shardOfKey.values())).hasSize(2);

        ProxiedDatabase unavailable = databases.get(1);
        int unavailableNumber = eventSql.shards().stream()
                .filter(info -> info.dataSource() == unavailable.pool())
                .findFirst()
                .orElseThrow()
                .number();
        unavailable.proxy().blackhole();
        // Events with keys of the unavailable shard wait, while all others are stored.
        List<CompletableFuture<EventPosition>> waiting = new ArrayList<>();
        Set<String> published = new HashSet<>();
        shardOfKey.forEach((key, shard) -> {
            if (shard == unavailableNumber) {
                waiting.add(eventSql.publisher().publishAsync("sharded", Event.ofText(key, "unavailable " + key)));
            } else {
                eventSql.publisher().publish("sharded", Event.ofText(key, "available " + key));
                published.add("available " + key);
            }
        });
        for (CompletableFuture<EventPosition> future : waiting) {
            assertThatThrownBy(() -> future.get(120, TimeUnit.SECONDS))
                    .isInstanceOf(ExecutionException.class)
                    .cause()
                    .isInstanceOfAny(EventNotStoredException.class, EventOutcomeUnknownException.class);
        }
        // The shard is known to be unavailable by now, so events without keys go to the other one.
        for (int i = 0; i < 40; i++) {
            EventPosition position = eventSql.publisher().publish("sharded", Event.ofText("without key " + i));
            assertThat(position.shard()).isNotEqualTo(unavailableNumber);
            published.add("without key " + i);
        }
        await().atMost(Duration.ofSeconds(120)).until(() -> handledOn.keySet().containsAll(published));

        unavailable.proxy().heal();
        // Events without keys only: the recovery must be detected without events of its keys.
        await().atMost(Duration.ofSeconds(120))
                .until(() -> eventSql.publisher()
                                .publish("sharded", Event.ofText("again " + handledOn.size() + System.nanoTime()))
                                .shard()
                        == unavailableNumber);
        for (Map.Entry<String, Integer> key : shardOfKey.entrySet()) {
            eventSql.publisher().publish("sharded", Event.ofText(key.getKey(), "after " + key.getKey()));
        }
        await().atMost(Duration.ofSeconds(120))
                .until(() -> shardOfKey.keySet().stream().allMatch(key -> handledOn.containsKey("after " + key)));
        assertThat(handledTwice).isEmpty();
        List<Ledger.Stored> stored = Ledger.read(
                "sharded", databases.stream().map(ProxiedDatabase::direct).toList());
        Ledger.assertGapless(stored);
        assertThat(stored).extracting(Ledger.Stored::value).doesNotHaveDuplicates();
    }

    /** Shown before the fix: the partition of the unavailable shard kept the permit until its redrive was stored. */
    @Test
    void redrive_shardBecomesUnavailableWhenTheHandlerReturns_otherShardsAreHandled() throws Exception {
        List<ProxiedDatabase> databases = List.of(proxied(), proxied());
        EventSql eventSql = opened(
                EventSql.builder(databases.stream().map(ProxiedDatabase::pool).toList())
                        .settings(Settings.builder()
                                .networkTimeout(Duration.ofMillis(500))
                                .build())
                        .build());
        eventSql.createStream(TestStreams.of("redriven").withPartitions(1));
        ProxiedDatabase unavailable = databases.get(0);
        int unavailableNumber = eventSql.shards().stream()
                .filter(info -> info.dataSource() == unavailable.pool())
                .findFirst()
                .orElseThrow()
                .number();
        AtomicBoolean failing = new AtomicBoolean(true);
        Set<String> handled = ConcurrentHashMap.newKeySet();
        eventSql.subscribe(
                ConsumerSpec.of("redriven", "reader")
                        .withConcurrency(1)
                        .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                        .withFailurePolicy(FailurePolicy.PARK_KEY),
                event -> {
                    if (event.text().equals("bad") && failing.get()) {
                        throw new IllegalStateException("cannot handle it");
                    }
                    if (event.text().equals("bad")) {
                        unavailable.proxy().blackhole();
                    }
                    handled.add(event.text());
                });
        Map<Boolean, String> keys = new HashMap<>(); // by whether they belong to that shard
        for (int i = 0; keys.size() < 2; i++) {
            EventPosition position = eventSql.publisher().publish("redriven", Event.ofText("k" + i, "first" + i));
            keys.put(position.shard() == unavailableNumber, "k" + i);
        }
        eventSql.publisher().publish("redriven", Event.ofText(keys.get(true), "bad"));
        await().atMost(Duration.ofSeconds(120))
                .until(() ->
                        eventSql.consumer("redriven", "reader").parkedEvents(10).size() == 1);
        failing.set(false);
        assertThat(eventSql.consumer("redriven", "reader").redrive()).isEqualTo(1);
        await().atMost(Duration.ofSeconds(120)).until(() -> handled.contains("bad"));

        eventSql.publisher().publish("redriven", Event.ofText(keys.get(false), "other"));
        await().atMost(Duration.ofSeconds(60)).until(() -> handled.contains("other"));
        unavailable.proxy().heal();
        await().atMost(Duration.ofSeconds(120))
                .ignoreExceptions()
                .until(() ->
                        eventSql.consumer("redriven", "reader").parkedEvents(10).isEmpty());
    }
}
