package io.eventsql.flink.sink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.eventsql.flink.sink.KeyRoutes.PartitionMap;
import io.eventsql.flink.sink.KeyRoutes.Target;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;

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

    /** Maps of streams that are closed while keys move, as an earlier release of the sink has read them. */
    @Test
    @Timeout(value = 30, threadMode = ThreadMode.SEPARATE_THREAD)
    void turns_mapsHaveNegativeVersions_areThoseOfShardsWithSlots() {
        KeyRoutes closed = new KeyRoutes(Collections.nCopies(KeyHash.SLOTS, 0), List.of(PartitionMap.first(-1, 1)));
        assertThat(closed.ofTurn(3)).isEqualTo(new Target(0, 0));
        assertThat(closed.mapVersion(new Target(0, 0))).isEqualTo(-1);

        List<PartitionMap> maps = List.of(PartitionMap.NO_SLOTS, PartitionMap.first(1, 1));
        KeyRoutes oneOfTwo = new KeyRoutes(Collections.nCopies(KeyHash.SLOTS, 1), maps);
        assertThat(oneOfTwo.ofTurn(0)).isEqualTo(oneOfTwo.ofTurn(1)).isEqualTo(new Target(1, 0));
        assertThat(IntStream.range(0, 4).mapToObj(oneOfTwo::hasSlots)).containsExactly(false, true, false, false);
        assertThat(oneOfTwo.mapVersion(new Target(3, 0))).isEqualTo(PartitionMap.NO_SLOTS.version());

        KeyRoutes none = new KeyRoutes(List.of(), List.of(PartitionMap.NO_SLOTS));
        assertThatIllegalStateException().isThrownBy(() -> none.ofTurn(0));
    }

    @Test
    void turns_reachEachPartitionOnce() {
        KeyRoutes routes = new KeyRoutes(List.of(), Collections.nCopies(SHARDS, PartitionMap.first(1, PARTITIONS)));
        assertThat(IntStream.range(-2, SHARDS * PARTITIONS - 2).mapToObj(routes::ofTurn))
                .doesNotHaveDuplicates()
                .allMatch(target -> target.shard() < SHARDS && target.partition() < PARTITIONS);
    }
}
