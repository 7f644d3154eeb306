package io.eventsql.internal.append;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The seed of the random part is printed on failure and can be set with {@code -Deventsql.test.seed}. */
class Utf8Test {
    private static final long SEED = Long.getLong("eventsql.test.seed", System.nanoTime());

    @Test
    void length_atRandom_isThatOfTheEncodedText() {
        Random random = new Random(SEED);
        for (int round = 0; round < 2_000; round++) {
            StringBuilder text = new StringBuilder();
            for (int i = random.nextInt(12); i > 0; i--) {
                switch (random.nextInt(4)) {
                    case 0 -> text.append((char) (1 + random.nextInt(0x7f)));
                    case 1 -> text.append((char) (0x80 + random.nextInt(0x780)));
                    case 2 -> text.appendCodePoint(0x10000 + random.nextInt(0x100000));
                    default -> text.append((char) (0xe000 + random.nextInt(0x2000)));
                }
            }
            assertThat(Utf8.indexOfInvalid(text.toString()))
                    .as("seed %d, round %d", SEED, round)
                    .isEqualTo(-1);
            assertThat(Utf8.length(text.toString()))
                    .as("seed %d, round %d", SEED, round)
                    .isEqualTo(text.toString().getBytes(StandardCharsets.UTF_8).length);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"\u0000", "\ud83d", "\ude00", "\ud83dx", "\ud83d\ud83d\ude00"})
    void indexOfInvalid_nulOrHalfAPair_isItsIndex(String invalid) {
        assertThat(Utf8.indexOfInvalid(invalid)).isZero();
        assertThat(Utf8.indexOfInvalid("a\ud83d\ude00" + invalid)).isEqualTo(3);
    }
}
