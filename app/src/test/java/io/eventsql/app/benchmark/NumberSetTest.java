package io.eventsql.app.benchmark;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.benchmark.event.BenchmarkEvent;
import java.util.BitSet;
import java.util.Random;
import org.junit.jupiter.api.Test;

class NumberSetTest {
    private final NumberSet numbers = new NumberSet();

    @Test
    void add_bordersOfWordsAndChunks_areToldApart() {
        long[] borders = {0, 1, 63, 64, 65, 65_535, 65_536, 65_537, 131_071, 131_072, BenchmarkEvent.MAX_NUMBER};
        for (long number : borders) {
            assertThat(numbers.add(number)).as("%d first", number).isTrue();
        }
        for (long number : borders) {
            assertThat(numbers.add(number)).as("%d again", number).isFalse();
        }
        assertThat(numbers.size()).isEqualTo(borders.length);
    }

    @Test
    void add_randomNumbers_agreesWithABitSet() {
        Random random = new Random(1);
        BitSet expected = new BitSet();
        for (int i = 0; i < 300_000; i++) {
            int number = random.nextInt(400_000);
            assertThat(numbers.add(number)).isEqualTo(!expected.get(number));
            expected.set(number);
        }
        assertThat(numbers.size()).isEqualTo(expected.cardinality());
    }
}
