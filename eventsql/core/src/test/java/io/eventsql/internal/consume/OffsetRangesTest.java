package io.eventsql.internal.consume;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.BitSet;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** The seed of the random part is printed on failure and can be set with {@code -Deventsql.test.seed}. */
class OffsetRangesTest {
    private static final long SEED = Long.getLong("eventsql.test.seed", System.nanoTime());
    private static final int OFFSETS = 200;

    private final OffsetRanges ranges = new OffsetRanges();

    @Test
    void add_adjacentRanges_areOne() {
        ranges.add(1, 2);
        ranges.add(3, 4);
        assertThat(ranges.size()).isEqualTo(2);

        ranges.add(2, 3);

        assertThat(ranges.size()).isEqualTo(1);
        assertThat(ranges.endOfRangeAt(1)).isEqualTo(4);
        assertThat(ranges.endOfRangeAt(4)).isEqualTo(4);
    }

    @Test
    void add_rangesBehindOneOffset_takeNoMoreMemoryHoweverManyThereAre() {
        for (int offset = 1; offset < 100_000; offset++) {
            ranges.add(offset, offset + 1);
        }
        assertThat(ranges.size()).isEqualTo(1);
    }

    @Test
    void anyOperations_atRandom_areThoseOfABitSet() {
        Random random = new Random(SEED);
        BitSet expected = new BitSet();
        for (int round = 0; round < 5_000; round++) {
            int first = random.nextInt(OFFSETS);
            int next = first + 1 + random.nextInt(10);
            switch (random.nextInt(8)) {
                case 0 -> {
                    ranges.removeBelow(first);
                    expected.clear(0, first);
                }
                case 1 ->
                    assertThat(ranges.count(first, next))
                            .as("seed %d, round %d", SEED, round)
                            .isEqualTo(expected.get(first, next).cardinality());
                case 2 ->
                    assertThat(ranges.endOfRangeAt(first))
                            .as("seed %d, round %d", SEED, round)
                            .isEqualTo(expected.nextClearBit(first));
                default -> {
                    ranges.add(first, next);
                    expected.set(first, next);
                }
            }
            if (expected.cardinality() > OFFSETS * 3 / 4) {
                ranges.removeBelow(OFFSETS * 2);
                expected.clear();
            }
            assertThat(ranges.isEmpty()).isEqualTo(expected.isEmpty());
        }
    }
}
