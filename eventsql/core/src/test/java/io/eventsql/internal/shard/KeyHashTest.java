package io.eventsql.internal.shard;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.BitSet;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The pinned values must never change, because they determine where events are stored. They were computed independently by
 * this Python script, whose first half yields the published FNV-1a test vectors (0xaf63dc4c8601ec8c for "a",
 * 0x85944171f73967e8 for "foobar"):
 *
 * <pre>{@code
 * M = (1 << 64) - 1
 *
 * def key_hash(key):
 *     h = 0xcbf29ce484222325
 *     for b in key.encode("utf-8"):
 *         h = (h ^ b) * 0x100000001b3 & M
 *     h = (h ^ h >> 33) * 0xff51afd7ed558ccd & M
 *     h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53 & M
 *     return h ^ h >> 33
 *
 * for key in ["", "a", "foobar", ...]:
 *     h = key_hash(key)
 *     print(f"{key}, {h:016x}, {h % 1024}, {(h >> 32) % 10}, {(h >> 32) % 7}")
 * }</pre>
 */
class KeyHashTest {

    @ParameterizedTest
    @CsvSource({
        "'', efd01f60ba992926, 294, 4, 0",
        "a, 82a2a958a9bece5b, 603, 4, 0",
        "foobar, 2c22194922d1672b, 811, 1, 5",
        "order-1, 491b422e3af0d9a5, 421, 2, 3",
        "order-2, aaca0c2aeae39bab, 939, 6, 6",
        "customer/4711, 154226946708ec60, 96, 8, 5",
        "k\u00e4se, 5f36cdeaf19e5148, 328, 8, 4",
        "\u65e5\u672c\u8a9e, e11518acc326d0e8, 232, 2, 3",
        "\ud83d\ude00, da89b0991f06f386, 902, 9, 5",
    })
    void of_pinnedKey_returnsPinnedSlotAndPartition(String key, String hash, int slot, int ofTen, int ofSeven) {
        assertThat(KeyHash.of(key)).isEqualTo(Long.parseUnsignedLong(hash, 16));
        assertThat(KeyHash.slot(KeyHash.of(key))).isEqualTo(slot);
        assertThat(KeyHash.partition(KeyHash.of(key), 10)).isEqualTo(ofTen);
        assertThat(KeyHash.partition(KeyHash.of(key), 7)).isEqualTo(ofSeven);
    }

    @Test
    void of_longKey_returnsPinnedHash() {
        assertThat(KeyHash.of("x".repeat(1_024))).isEqualTo(0xaa923e73b74b0f2eL);
    }

    @Test
    void slot_manyKeys_areSpreadEvenly() {
        int[] keysOf = new int[KeyHash.SLOTS];
        int keys = 100 * KeyHash.SLOTS;
        for (int i = 0; i < keys; i++) {
            keysOf[KeyHash.slot(KeyHash.of("account-" + i))]++;
        }
        // The standard deviation of an even distribution is 10 here, so 60 to 140 is four of them on either side.
        assertThat(IntStream.of(keysOf)).allMatch(n -> n >= 60 && n <= 140);
    }

    @ParameterizedTest
    @CsvSource({"1, 10", "2, 2", "2, 8", "2, 10", "3, 3", "3, 10", "3, 16", "4, 4", "4, 64", "7, 7", "8, 32", "16, 16"})
    void partition_keysOfOneShard_areSpreadEvenly(int shards, int partitions) {
        int[][] keysOf = new int[shards][partitions];
        int each = 1_000;
        for (int i = 0; i < each * shards * partitions; i++) {
            long hash = KeyHash.of("order-" + i);
            keysOf[KeyHash.slot(hash) % shards][KeyHash.partition(hash, partitions)]++;
        }
        for (int[] ofShard : keysOf) {
            // Six standard deviations of an even distribution; with the bits of the slot most partitions would be
            // empty.
            assertThat(IntStream.of(ofShard)).allMatch(n -> n > each - 200 && n < each + 200);
        }
    }

    @Test
    void partition_keysOfOneSlot_useAllPartitions() {
        BitSet used = new BitSet();
        for (int i = 0; i < 200_000; i++) {
            long hash = KeyHash.of("k" + i);
            if (KeyHash.slot(hash) == 17) {
                used.set(KeyHash.partition(hash, 16));
            }
        }
        assertThat(used.cardinality()).isEqualTo(16);
    }
}
