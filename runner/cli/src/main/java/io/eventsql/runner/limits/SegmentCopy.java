package io.eventsql.runner.limits;

import io.eventsql.benchmark.event.BenchmarkEvent;
import java.sql.Connection;
import java.sql.SQLException;

/**
 * Appends to one partition by binary COPY directly into the table of its first segment, bypassing the library, with its
 * own offsets. The table is the library's, so the work on the heap and the primary key is the same. Everything that
 * makes an append safe is omitted. For use by one thread at a time.
 */
final class SegmentCopy {
    private final String run;
    private final int partition;
    private final String table;
    private long nextOffset;

    /** @param run the run's id in the events, see {@link BenchmarkEvent} */
    SegmentCopy(String run, StreamLog log, int partition) throws SQLException {
        this.run = run;
        this.partition = partition;
        this.table = log.firstSegment(partition);
    }

    /** Appends a number of events in one transaction. Returns when they are committed. */
    void copy(Connection connection, int events) throws SQLException {
        CopyRowWriter.copy(connection, table, run, partition, nextOffset, events);
        nextOffset += events;
    }
}
