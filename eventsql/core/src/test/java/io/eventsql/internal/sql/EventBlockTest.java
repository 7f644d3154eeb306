package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.eventsql.internal.sql.BlockAppendStatement.Blocks;
import io.eventsql.internal.sql.BlockAppendStatement.Packer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

class EventBlockTest {
    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] block() {
        byte[][] fields = {utf8("ü"), {1, 2}, utf8("{}"), null, null, null, utf8("b"), {}, null};
        return EventBlock.pack(fields, fields.length, 7);
    }

    @Test
    void pack_thenRead_returnsTheFields() throws CharacterCodingException {
        EventBlock block = new EventBlock(block(), 3);
        assertThat(block.key(0)).isEqualTo("ü");
        assertThat(block.value(0)).containsExactly(1, 2);
        assertThat(block.headers(0)).isEqualTo("{}");
        assertThat(block.key(1)).isNull();
        assertThat(block.value(1)).isNull();
        assertThat(block.headers(1)).isNull();
        assertThat(block.key(2)).isEqualTo("b");
        assertThat(block.value(2)).isEmpty();
        assertThat(block.headers(2)).isNull();
    }

    @Test
    void read_whatIsNoBlock_isRejected() {
        byte[] block = block();
        for (int length = 0; length < block.length; length++) {
            byte[] cut = Arrays.copyOf(block, length);
            assertThatIllegalArgumentException().isThrownBy(() -> new EventBlock(cut, 3));
        }
        assertThatIllegalArgumentException().isThrownBy(() -> new EventBlock(block, 2));
        assertThatIllegalArgumentException().isThrownBy(() -> new EventBlock(block, 4));
        assertThatIllegalArgumentException().isThrownBy(() -> new EventBlock(block, -1));
        for (int i = 0; i < EventBlock.directoryBytes(3); i++) {
            byte[] changed = block.clone();
            changed[i] ^= 0x40;
            assertThatIllegalArgumentException().isThrownBy(() -> new EventBlock(changed, 3));
        }
    }

    @Test
    void read_invalidText_fails() throws CharacterCodingException {
        byte[][] fields = {{'a', (byte) 0xff}, {}, utf8("{\"a\":\"\uFFFD\"}")};
        EventBlock block = new EventBlock(EventBlock.pack(fields, 3, 2 + fields[2].length), 1);
        assertThatExceptionOfType(CharacterCodingException.class).isThrownBy(() -> block.key(0));
        assertThat(block.headers(0)).isEqualTo("{\"a\":\"\uFFFD\"}");
    }

    @Test
    void packer_dividesEventsByPartitionAndSize() {
        Packer packer = new Packer(2);
        packer.begin("a", 1, 0);
        for (int i = 0; i < 100; i++) {
            packer.add(null, new byte[188], null); // 200 bytes with its numbers
        }
        packer.begin("b", 2, 5);
        packer.add("k", new byte[10], null);
        packer.add("k", new byte[20_000], null);
        packer.add("k", null, null);
        Blocks blocks = packer.finish();
        assertThat(blocks.streams()).containsExactly("a", "b");
        assertThat(blocks.streamIds()).containsExactly(1, 2);
        assertThat(blocks.partitions()).containsExactly(0, 5);
        assertThat(blocks.counts()).containsExactly(100, 3);
        assertThat(blocks.groups()).containsExactly(1, 1, 1, 2, 2, 2);
        assertThat(blocks.ends()).containsExactly(39, 78, 100, 1, 2, 3);
        assertThat(blocks.events()).containsExactly(39, 39, 22, 1, 1, 1);
        assertThat(blocks.blocks()[0]).hasSize(4 + 39 * 200);
        assertThat(blocks.blocks()[4]).hasSize(4 + 12 + 1 + 20_000);
    }
}
