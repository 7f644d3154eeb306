package io.eventsql.runner.plain;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class CopyRowWriterTest {
    private final ByteArrayOutputStream written = new ByteArrayOutputStream();
    private final List<Integer> chunks = new ArrayList<>();

    @Test
    void rows_areInTheDocumentedFormat() throws SQLException {
        CopyRowWriter rows = rows();
        rows.writeHeader();
        // One second after PostgreSQL's epoch.
        rows.writeRow(7, 8, new byte[] {1, 2, 3}, 946_684_801_000_000L);
        rows.writeTrailer();

        ByteBuffer expected = ByteBuffer.allocate(200);
        expected.put("PGCOPY\n\u00ff\r\n\0".getBytes(ISO_8859_1)).putInt(0).putInt(0);
        expected.putShort((short) 6).putInt(4).putInt(7).putInt(8).putLong(8);
        expected.putInt(-1).putInt(3).put(new byte[] {1, 2, 3}).putInt(-1);
        expected.putInt(8).putLong(1_000_000).putShort((short) -1);
        assertThat(ByteBuffer.wrap(written.toByteArray())).isEqualTo(expected.flip());
    }

    @Test
    void rows_many_areWrittenInChunks() throws SQLException {
        CopyRowWriter rows = rows();
        rows.writeHeader();
        for (int i = 0; i < 1_000; i++) {
            rows.writeRow(0, i, new byte[230], 0);
        }
        rows.writeTrailer();

        assertThat(written.size()).isEqualTo(19 + 1_000 * (46 + 230) + 2);
        assertThat(chunks).hasSizeGreaterThan(3).allMatch(length -> length > 0 && length <= 64 << 10);
    }

    private CopyRowWriter rows() {
        return new CopyRowWriter((bytes, from, length) -> {
            chunks.add(length);
            written.write(bytes, from, length);
        });
    }
}
