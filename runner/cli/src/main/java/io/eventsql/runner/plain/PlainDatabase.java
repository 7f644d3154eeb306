package io.eventsql.runner.plain;

import io.eventsql.EventSql;
import io.eventsql.StreamSpec;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.settings.DatabaseVariables;
import io.eventsql.benchmark.settings.Variables;
import io.eventsql.runner.database.Databases;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Jdbc;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;

/**
 * A database of EventSQL, and tables of a new stream that plain programs write to by themselves. The tables have the same
 * columns and primary keys as the library's, because they are the library's; the stream is otherwise unused. Thread-safe.
 */
final class PlainDatabase implements AutoCloseable {
    private final Databases databases;
    private final EventSql eventSql;
    private final String run = BenchmarkEvent.randomRun();

    /** Opens the first database of the environment. */
    PlainDatabase(DriverSettings settings) {
        databases = Databases.open(DatabaseVariables.read(new Variables(settings.environment()::get)));
        try {
            eventSql = EventSql.builder(databases.dataSources()).build();
        } catch (RuntimeException e) {
            databases.close();
            throw e;
        }
    }

    /** Returns the id of this use, see {@link BenchmarkEvent}; part of the names of its tables. */
    String run() {
        return run;
    }

    /** Returns a connection of the pool. */
    Connection connect() throws SQLException {
        return databases.dataSources().getFirst().getConnection();
    }

    /**
     * Creates a stream of one segment per partition, because nothing else would add segments.
     *
     * @return the table of each partition on the first database, with its schema
     */
    List<String> createTables(String stream, int partitions) throws SQLException {
        eventSql.createStream(
                StreamSpec.of(stream).withPartitions(partitions).withSegmentSize(StreamSpec.SEGMENT_SIZE_MAX));
        // Indexes: stream_name_unique and the primary key of segment. Takes no row lock.
        String sql = "SELECT g.table_name FROM eventsql.segment g JOIN eventsql.stream s USING (stream_id)"
                + " WHERE s.name = ? AND g.first_offset = 0 ORDER BY g.partition";
        return Jdbc.rows(databases.dataSources().getFirst(), sql, row -> "eventsql." + row.getString(1), stream);
    }

    @Override
    public void close() {
        eventSql.close();
        databases.close();
    }
}
