package io.eventsql.runner.plain;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.event.EpochMicros;
import java.nio.ByteBuffer;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyIn;

/**
 * Writes rows of a segment table in PostgreSQL's binary COPY format (documentation of COPY, "Binary Format"): a header,
 * the tuples with the number of fields and each field's length and bytes, and a trailer. Writes in chunks, so that the
 * server parses while the client still writes. For use by one thread.
 */
public final class CopyRowWriter {
    /** The columns in the order of the fields. */
    static final String COLUMNS = "partition, event_offset, key, value, headers, published_at";

    private static final byte[] SIGNATURE = "PGCOPY\n\u00ff\r\n\0".getBytes(ISO_8859_1);
    private static final short FIELDS = 6;
    private static final short END = -1;
    private static final int NULL = -1;
    private static final int CHUNK_BYTES = 64 << 10;
    /** The size of a row without its value. */
    private static final int ROW_BYTES = 46;

    /** The epoch of PostgreSQL timestamps. */
    private static final long POSTGRES_EPOCH_MICROS =
            ChronoUnit.MICROS.between(Instant.EPOCH, Instant.parse("2000-01-01T00:00:00Z"));

    /** Receives the chunks, such as pgjdbc's {@code CopyIn::writeToCopy}. */
    interface Sink {
        void write(byte[] bytes, int from, int length) throws SQLException;
    }

    private final Sink sink;
    private final ByteBuffer chunk = ByteBuffer.allocate(CHUNK_BYTES);

    CopyRowWriter(Sink sink) {
        this.sink = sink;
    }

    /**
     * Copies events into the table of a segment, in the connection's transaction or in one of their own.
     *
     * @param table the name of the table, with its schema
     * @param run the run's id in the events, see {@link BenchmarkEvent}
     */
    public static void copy(
            Connection connection, String table, String run, int partition, long firstOffset, long events)
            throws SQLException {
        CopyIn copy = connection
                .unwrap(PGConnection.class)
                .getCopyAPI()
                .copyIn("COPY " + table + " (" + COLUMNS + ") FROM STDIN (FORMAT BINARY)");
        try {
            CopyRowWriter rows = new CopyRowWriter(copy::writeToCopy);
            rows.writeHeader();
            for (long offset = firstOffset; offset < firstOffset + events; offset++) {
                long now = EpochMicros.now();
                rows.writeRow(partition, offset, new BenchmarkEvent(run, 0, false, offset, now).encode(), now);
            }
            rows.writeTrailer();
            copy.endCopy();
        } finally {
            if (copy.isActive()) {
                copy.cancelCopy();
            }
        }
    }

    /** Writes the file header. */
    void writeHeader() {
        chunk.put(SIGNATURE).putInt(0).putInt(0);
    }

    /**
     * Writes one row, without key and headers.
     *
     * @param value at most 60,000 bytes
     * @param publishedAtMicros the publish time in epoch microseconds
     */
    void writeRow(int partition, long offset, byte[] value, long publishedAtMicros) throws SQLException {
        if (chunk.remaining() < ROW_BYTES + value.length) {
            flush();
        }
        chunk.putShort(FIELDS);
        chunk.putInt(Integer.BYTES).putInt(partition);
        chunk.putInt(Long.BYTES).putLong(offset);
        chunk.putInt(NULL);
        chunk.putInt(value.length).put(value);
        chunk.putInt(NULL);
        chunk.putInt(Long.BYTES).putLong(publishedAtMicros - POSTGRES_EPOCH_MICROS);
    }

    /** Writes the file trailer and flushes the last chunk. */
    void writeTrailer() throws SQLException {
        if (chunk.remaining() < Short.BYTES) {
            flush();
        }
        chunk.putShort(END);
        flush();
    }

    private void flush() throws SQLException {
        sink.write(chunk.array(), 0, chunk.position());
        chunk.clear();
    }
}
