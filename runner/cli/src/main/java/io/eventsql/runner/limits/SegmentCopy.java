package io.eventsql.runner.limits;

import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.event.EpochMicros;
import java.sql.Connection;
import java.sql.SQLException;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyIn;

/**
 * Appends to one partition by binary COPY directly into the table of its first segment, bypassing the library, with its
 * own offsets. The table is the library's, so the work on the heap and the primary key is the same. Everything that
 * makes an append safe is omitted. For use by one thread at a time.
 */
final class SegmentCopy {
    private final String run;
    private final int partition;
    private final String sql;
    private long nextOffset;

    /** @param run the run's id in the events, see {@link BenchmarkEvent} */
    SegmentCopy(String run, StreamTables tables, int partition) throws SQLException {
        this.run = run;
        this.partition = partition;
        this.sql = "COPY " + tables.firstSegment(partition) + " (" + CopyRowWriter.COLUMNS
                + ") FROM STDIN (FORMAT BINARY)";
    }

    /** Appends a number of events in one transaction. Returns when they are committed. */
    void copy(Connection connection, int events) throws SQLException {
        CopyIn copy = connection.unwrap(PGConnection.class).getCopyAPI().copyIn(sql);
        try {
            CopyRowWriter rows = new CopyRowWriter(copy::writeToCopy);
            rows.writeHeader();
            for (int i = 0; i < events; i++) {
                long now = EpochMicros.now();
                long offset = nextOffset + i;
                rows.writeRow(partition, offset, new BenchmarkEvent(run, 0, false, offset, now).encode(), now);
            }
            rows.writeTrailer();
            copy.endCopy();
        } finally {
            if (copy.isActive()) {
                copy.cancelCopy();
            }
        }
        nextOffset += events;
    }
}
