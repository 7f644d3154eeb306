package io.eventsql.benchmark.event;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.Base64;
import java.util.BitSet;
import java.util.Random;
import org.junit.jupiter.api.Test;

class NumberSetTest {
    private final NumberSet numbers = new NumberSet();

    @Test
    void add_boundariesOfWordsAndChunks_areDistinguished() {
        long[] borders = {0, 1, 63, 64, 65, 65_535, 65_536, 65_537, 131_071, 131_072, BenchmarkEvent.NUMBER_MAX};
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

    @Test
    void decode_encoded_isTheSameSet() {
        long[] members = {0, 63, 64, 65_535, 65_536, 1_000_000, BenchmarkEvent.NUMBER_MAX};
        Arrays.stream(members).forEach(numbers::add);

        NumberSet decoded = NumberSet.decode(numbers.encode());

        assertThat(decoded.size()).isEqualTo(members.length);
        for (long number : members) {
            assertThat(decoded.add(number)).as("%d is there", number).isFalse();
        }
        assertThat(decoded.add(1)).as("what was not there is not").isTrue();
        assertThat(NumberSet.decode(new NumberSet().encode()).size()).isZero();
    }

    @Test
    void encode_noneMissing_isTiny() {
        for (long number = 0; number < 1_000_000; number++) {
            numbers.add(number);
        }

        assertThat(numbers.encode().length()).isLessThan(1_000);
    }

    @Test
    void decode_otherText_isRejected() {
        numbers.add(7);
        byte[] whole = Base64.getDecoder().decode(numbers.encode());
        String cutOff = Base64.getEncoder().encodeToString(Arrays.copyOf(whole, whole.length / 2));
        String empty = Base64.getEncoder().encodeToString(new byte[0]);

        for (String text : new String[] {"no base 64!", "AAAA", cutOff, empty}) {
            assertThatThrownBy(() -> NumberSet.decode(text)).as(text).isInstanceOf(IllegalArgumentException.class);
        }
    }

    @Test
    void addAll_overlappingSets_countsEachNumberOnce() {
        NumberSet other = new NumberSet();
        for (long number : new long[] {0, 1, 2, 70_000}) {
            numbers.add(number);
        }
        for (long number : new long[] {2, 3, 70_000, 140_000}) {
            other.add(number);
        }

        numbers.addAll(other);

        assertThat(numbers.size()).isEqualTo(6);
        assertThat(other.size()).as("stays as it was").isEqualTo(4);
        assertThat(other.add(1)).isTrue();
    }

    @Test
    void copy_doesNotChangeWithTheOriginal() {
        numbers.add(1);

        NumberSet copy = numbers.copy();
        numbers.add(2);

        assertThat(copy.size()).isEqualTo(1);
        assertThat(copy.add(2)).isTrue();
    }
}
