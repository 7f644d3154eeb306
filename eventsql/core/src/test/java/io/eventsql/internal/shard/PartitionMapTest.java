package io.eventsql.internal.shard;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Objects;
import java.util.Random;
import java.util.TreeSet;
import java.util.function.IntPredicate;
import org.junit.jupiter.api.Test;

class PartitionMapTest {
    private static Short[] boxed(short[] slots) {
        Short[] boxed = new Short[slots.length];
        for (int i = 0; i < slots.length; i++) {
            boxed[i] = slots[i];
        }
        return boxed;
    }

    /** A stream that has not grown can be written as slots, whatever its number of partitions is. */
    @Test
    void slots_anyNumberOfPartitions_placeKeysAsWithoutSlots() {
        Random random = new Random(7);
        for (int partitions = 1; partitions <= 1_000; partitions++) {
            PartitionMap first = PartitionMap.first(1, partitions);
            PartitionMap stored = PartitionMap.of(1, partitions, boxed(first.slots()));
            assertThat(first.slots().length).isBetween(1_000, PartitionMap.SLOTS_MAX);
            for (int i = 0; i < 100; i++) {
                long hash = random.nextLong();
                assertThat(stored.partition(hash))
                        .isEqualTo(first.partition(hash))
                        .isEqualTo(KeyHash.partition(hash, partitions));
            }
        }
    }

    @Test
    void grown_evenlyAndOnlyToNewPartitions() {
        for (int[] growth : new int[][] {{10, 20}, {1, 2}, {3, 5}, {4, 1_000}, {999, 1_000}, {12, 13}}) {
            PartitionMap first = PartitionMap.first(1, growth[0]);
            PartitionMap grown = first.grown(growth[1], slot -> true);
            assertThat(grown.version()).isEqualTo(2);
            assertThat(grown.partitions()).isEqualTo(growth[1]);
            short[] before = first.slots();
            short[] after = grown.slots();
            int[] owned = new int[growth[1]];
            for (int i = 0; i < after.length; i++) {
                owned[after[i]]++;
                assertThat(after[i] == before[i] || after[i] >= growth[0])
                        .as("slot %s moves only to a new partition", i)
                        .isTrue();
            }
            for (int slots : owned) {
                assertThat(slots).isBetween(after.length / growth[1], Math.ceilDiv(after.length, growth[1]));
            }
        }
    }

    @Test
    void grown_doubled_eachNewPartitionHasOneGiver() {
        short[] before = PartitionMap.first(1, 10).slots();
        short[] after = PartitionMap.first(1, 10).grown(20, slot -> true).slots();
        for (int receiver = 10; receiver < 20; receiver++) {
            TreeSet<Integer> givers = new TreeSet<>();
            for (int i = 0; i < after.length; i++) {
                if (after[i] == receiver) {
                    givers.add((int) before[i]);
                }
            }
            assertThat(givers).hasSize(1);
        }
    }

    /** Of 205 key slots, 100 are as they were, 105 have moved there; others have left. */
    @Test
    void grown_keysHaveMoved_evenlyAndOnlyToNewPartitions() {
        for (int partitions : new int[] {15, 20, 40}) {
            short[] moved = new short[1_024];
            for (int slot = 0; slot < moved.length; slot++) {
                moved[slot] = (short) (slot < 100 ? -1 : 10 + slot % 4);
            }
            IntPredicate hasKeySlot = slot -> slot < 205;
            PartitionMap map = PartitionMap.of(7, 10, null, boxed(moved), true);
            assertThat(map.usedPartitions()).isEqualTo(14);
            PartitionMap grown = map.grown(partitions, hasKeySlot);
            assertThat(grown.version()).isEqualTo(8);
            assertThat(grown.usedPartitions()).isEqualTo(partitions).isEqualTo(grown.partitions());
            short[] slots = grown.slots();
            short[] movedAfter = Objects.requireNonNull(grown.moved());
            double[] shares = new double[partitions];
            for (int slot = 0; slot < slots.length; slot++) {
                shares[slots[slot]] += 100.0 / slots.length;
                assertThat(slots[slot] == map.slots()[slot] || slots[slot] >= 14)
                        .as("slot %s moves only to a new partition", slot)
                        .isTrue();
            }
            for (int slot = 0; slot < moved.length; slot++) {
                if (slot >= 205 || slot < 100) {
                    assertThat(movedAfter[slot]).isEqualTo(moved[slot]);
                    continue;
                }
                shares[movedAfter[slot]]++;
                assertThat(movedAfter[slot] == moved[slot] || movedAfter[slot] >= 14)
                        .as("key slot %s moves only to a new partition", slot)
                        .isTrue();
            }
            for (int partition = 0; partition < 14; partition++) {
                assertThat(shares[partition]).isLessThanOrEqualTo(partition < 10 ? 10.001 : 27);
            }
            for (int partition = 14; partition < partitions; partition++) {
                assertThat(shares[partition]).isBetween(205.0 / partitions - 1, 205.0 / partitions + 1);
            }
            assertThat(grown.countSlots(hasKeySlot)).isEqualTo(slots.length + 105);
            assertThat(map.movedSlots(grown)).isPositive();
        }
    }

    @Test
    void grown_twice_keepsWhatDoesNotMove() {
        PartitionMap map = PartitionMap.first(1, 3).grown(5, slot -> true);
        PartitionMap more = map.grown(8, slot -> true);
        assertThat(more.version()).isEqualTo(3);
        assertThat(map.movedSlots(more)).isBetween(map.slots().length * 3 / 8 - 8, map.slots().length * 3 / 8 + 8);
    }
}
