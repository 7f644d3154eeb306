package io.eventsql.internal.append;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.TestCluster;
import io.eventsql.internal.append.EventValidator.Valid;
import io.eventsql.internal.append.Router.Part;
import io.eventsql.internal.shard.KeyHash;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Routing of events to shards and partitions. Needs databases only because a shard needs one; nothing is stored. */
class RouterIT {
    private static final StreamSpec STREAM = StreamSpec.of("orders").withPartitions(5);

    private static TestCluster cluster;
    private static Shards shards;

    @BeforeAll
    static void open() {
        cluster = TestCluster.ofShards(3);
        shards = Shards.open(cluster.dataSources(), Settings.defaults());
    }

    @AfterAll
    static void close() {
        shards.close();
        cluster.close();
    }

    @AfterEach
    void heal() {
        shards.all().forEach(shard -> shard.setHealthy(true));
    }

    private static Valid event(String key) {
        return new Valid(key, new byte[0], null, 64);
    }

    private static Router router() {
        return new Router(shards, null);
    }

    @Test
    void route_sameKey_returnsSamePartition() {
        Router router = router();
        for (int i = 0; i < 200; i++) {
            Part part = router.route(STREAM, event("key-" + i));
            long hash = KeyHash.of("key-" + i);
            assertThat(part.shard().number()).isEqualTo(KeyHash.slot(hash) % 3);
            assertThat(part.partitions()).containsExactly(KeyHash.partition(hash, 5));
            Part again = router().route(STREAM, event("key-" + i));
            assertThat(again.shard()).isSameAs(part.shard());
            assertThat(again.partitions()).isEqualTo(part.partitions());
        }
    }

    @Test
    void route_keyOfUnhealthyShard_staysThere() {
        Router router = router();
        Shard home = router.route(STREAM, event("key")).shard();
        home.setHealthy(false);
        assertThat(router.route(STREAM, event("key")).shard()).isSameAs(home);
    }

    @Test
    void route_withoutKey_alternatesBetweenHealthyShards() {
        Router router = router();
        List<Integer> numbers = new ArrayList<>();
        for (int i = 0; i < 30; i++) {
            Part part = router.route(STREAM, event(null));
            assertThat(part.partitions()).isSameAs(PublishCall.ANY_PARTITION);
            numbers.add(part.shard().number());
        }
        for (int shard = 0; shard < 3; shard++) {
            assertThat(numbers).filteredOn(List.of(shard)::contains).hasSize(10);
        }
        shards.get(1).setHealthy(false);
        Set<Integer> used = new HashSet<>();
        for (int i = 0; i < 30; i++) {
            used.add(router.route(STREAM, event(null)).shard().number());
        }
        assertThat(used).containsExactlyInAnyOrder(0, 2);
    }

    @Test
    void route_withoutKeyAndAllUnhealthy_returnsAnyShard() {
        shards.all().forEach(shard -> shard.setHealthy(false));
        assertThat(router().route(STREAM, event(null)).shard()).isIn(shards.all());
    }

    @Test
    void route_preferredShardHealthy_takesEventsWithoutKey() {
        Router router = new Router(shards, cluster.dataSources().get(2));
        for (int i = 0; i < 10; i++) {
            assertThat(router.chooseShardForEventsWithoutKey(STREAM).number()).isEqualTo(2);
        }
        shards.get(2).setHealthy(false);
        Set<Integer> used = new HashSet<>();
        for (int i = 0; i < 10; i++) {
            used.add(router.chooseShardForEventsWithoutKey(STREAM).number());
        }
        assertThat(used).containsExactlyInAnyOrder(0, 1);
        shards.all().forEach(shard -> shard.setHealthy(false));
        assertThat(router.chooseShardForEventsWithoutKey(STREAM).number()).isEqualTo(2);
        shards.get(2).setHealthy(true);
        assertThat(router.chooseShardForEventsWithoutKey(STREAM).number()).isEqualTo(2);
    }

    @Test
    void routeAll_mixedEvents_eachIsInThePartOfItsShard() {
        List<Valid> events = IntStream.range(0, 100)
                .mapToObj(i -> event(i % 4 == 0 ? null : "key-" + i))
                .toList();
        List<Part> parts = router().route(STREAM, events);
        assertThat(parts).extracting(part -> part.shard().number()).containsExactly(0, 1, 2);
        List<Integer> indexes = new ArrayList<>();
        Set<String> partitionsWithoutKey = new HashSet<>();
        for (Part part : parts) {
            assertThat(part.indexes()).as("indexes in call order").isSorted();
            assertThat(part.partitions()).hasSameSizeAs(part.indexes());
            for (int i = 0; i < part.indexes().length; i++) {
                int index = part.indexes()[i];
                int partition = part.partitions()[i];
                indexes.add(index);
                String key = events.get(index).key();
                if (key == null) {
                    partitionsWithoutKey.add(part.shard().number() + "/" + partition);
                    assertThat(partition).isBetween(0, 4);
                } else {
                    assertThat(part.shard().number()).isEqualTo(KeyHash.slot(KeyHash.of(key)) % 3);
                    assertThat(partition).isEqualTo(KeyHash.partition(KeyHash.of(key), 5));
                }
            }
        }
        assertThat(indexes)
                .containsExactlyInAnyOrderElementsOf(
                        IntStream.range(0, 100).boxed().toList());
        assertThat(partitionsWithoutKey).hasSize(1);
    }

    @Test
    void routeAll_withoutKeys_leavesPartitionToTheBatch() {
        List<Part> parts = router().route(STREAM, List.of(event(null), event(null)));
        assertThat(parts).hasSize(1);
        assertThat(parts.getFirst().partitions()).isSameAs(PublishCall.ANY_PARTITION);
        assertThat(parts.getFirst().indexes()).containsExactly(0, 1);
    }
}
