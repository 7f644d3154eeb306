package io.eventsql.runner.plain;

import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.PlainLoop;
import io.eventsql.runner.driver.PlainProgram;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/**
 * Binary COPY into the tables of a stream, with a connection and a partition for each caller. It is a practical upper bound
 * for appends: everything that makes an append safe is omitted. The values are those of {@link BenchmarkEvent#encode()}.
 */
public final class CopyProgram implements PlainProgram {
    /** Rows per COPY and transaction. */
    public static final int EVENTS_PER_COMMIT = 5_000;

    /** Returns the load of a number of connections. */
    public static Load load(int connections, double seconds) {
        return new Load(connections, false, EVENTS_PER_COMMIT, 0, seconds);
    }

    /** Nothing consumes, so that both rates are those of the last commit. */
    @Override
    public Rates run(DriverSettings settings, Load load) throws Exception {
        List<Connection> connections = new ArrayList<>();
        try (PlainDatabase database = new PlainDatabase(settings)) {
            List<String> tables = database.createTables("copy_" + database.run(), load.callers());
            List<PlainLoop.Caller> callers = new ArrayList<>();
            for (int partition = 0; partition < load.callers(); partition++) {
                Connection connection = database.connect();
                connections.add(connection);
                callers.add(new Copies(connection, tables.get(partition), database.run(), partition, load));
            }
            return PlainLoop.run(load, callers, () -> {}, () -> Long.MAX_VALUE);
        } finally {
            for (Connection connection : connections) {
                connection.close();
            }
        }
    }

    /** The copies of one connection. For use by one thread. */
    private static final class Copies implements PlainLoop.Caller {
        private final Connection connection;
        private final String table;
        private final String run;
        private final int partition;
        private final int events;
        private long nextOffset;

        Copies(Connection connection, String table, String run, int partition, Load load) {
            this.connection = connection;
            this.table = table;
            this.run = run;
            this.partition = partition;
            this.events = load.eventsPerCall();
        }

        @Override
        public void call() throws SQLException {
            CopyRowWriter.copy(connection, table, run, partition, nextOffset, events);
            nextOffset += events;
        }
    }

    /**
     * Copies a number of events over one connection into a new stream that is not removed.
     *
     * @return the time from the start to the last commit, in milliseconds
     */
    public static double durationMs(DriverSettings settings, int events) throws SQLException {
        try (PlainDatabase database = new PlainDatabase(settings)) {
            String table = database.createTables("copy_" + database.run(), 1).getFirst();
            try (Connection connection = database.connect()) {
                long start = System.nanoTime();
                for (int copied = 0; copied < events; copied += EVENTS_PER_COMMIT) {
                    int count = Math.min(EVENTS_PER_COMMIT, events - copied);
                    CopyRowWriter.copy(connection, table, database.run(), 0, copied, count);
                }
                return (System.nanoTime() - start) / 1e6;
            }
        }
    }
}
