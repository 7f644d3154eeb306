package io.eventsql.runner.limits;

import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.event.EpochMicros;
import java.sql.Connection;
import java.sql.SQLException;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyIn;

/**
 * Appends to one partition past the library: binary COPY straight into its first segment's table, with offsets of its
 * own. The table is the library's, so the work of the heap and of the primary key is the same; what is left out is
 * everything that makes an append safe. For one thread at a time.
 */
final class SegmentCopy {
    private final String run;
    private final int partition;
    private final String sql;
    private long nextOffset;

    /** @param run the id in the events, see {@link BenchmarkEvent} */
    SegmentCopy(String run, StreamTables tables, int partition) {
        this.run = run;
        this.partition = partition;
        this.sql = "COPY " + tables.firstSegment(partition) + " (" + CopyRowWriter.COLUMNS
                + ") FROM STDIN (FORMAT BINARY)";
    }

    /** Appends so many events in one transaction; returns when they are committed. */
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
