package io.eventsql.flink.sink;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.flink.sink.KeyRoutes.PartitionMap;
import io.eventsql.flink.sink.KeyRoutes.Target;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Sinks agree with the library about where a key belongs. */
class KeyRoutesTest {
    private static final int SHARDS = 3;
    private static final int PARTITIONS = 7;

    @Test
    void key_goesWhereTheLibraryPutsIt() {
        List<Integer> slotMap = IntStream.range(0, KeyHash.SLOTS)
                .mapToObj(slot -> slot * 31 % SHARDS)
                .toList();
        KeyRoutes routes = new KeyRoutes(slotMap, Collections.nCopies(SHARDS, PartitionMap.first(1, PARTITIONS)));
        Random random = new Random(1);
        for (String key : List.of("", "a", "customer-17", "ä", "日本", "😀")) {
            for (int i = 0; i < 200; i++) {
                String varied = key + random.nextInt();
                long hash = io.eventsql.internal.shard.KeyHash.of(varied);
                assertThat(routes.of(varied))
                        .isEqualTo(new Target(
                                slotMap.get(io.eventsql.internal.shard.KeyHash.slot(hash)),
                                io.eventsql.internal.shard.KeyHash.partition(hash, PARTITIONS)));
            }
        }
    }

    @Test
    void key_ofAStreamThatHasGrown_goesWhereTheLibraryPutsIt() {
        io.eventsql.internal.shard.PartitionMap grown =
                io.eventsql.internal.shard.PartitionMap.first(1, PARTITIONS).grown(PARTITIONS + 3, slot -> true);
        List<Integer> slots = new ArrayList<>();
        for (short partition : grown.slots()) {
            slots.add((int) partition);
        }
        KeyRoutes routes = new KeyRoutes(
                Collections.nCopies(KeyHash.SLOTS, 0),
                List.of(new PartitionMap(grown.version(), grown.partitions(), slots)));
        Random random = new Random(2);
        for (int i = 0; i < 1_000; i++) {
            String key = "customer-" + random.nextInt();
            assertThat(routes.of(key))
                    .isEqualTo(new Target(0, grown.partition(io.eventsql.internal.shard.KeyHash.of(key))));
        }
    }

    @Test
    void turns_reachEachPartitionOnce() {
        KeyRoutes routes = new KeyRoutes(List.of(), Collections.nCopies(SHARDS, PartitionMap.first(1, PARTITIONS)));
        assertThat(IntStream.range(-2, SHARDS * PARTITIONS - 2).mapToObj(routes::ofTurn))
                .doesNotHaveDuplicates()
                .allMatch(target -> target.shard() < SHARDS && target.partition() < PARTITIONS);
    }
}
