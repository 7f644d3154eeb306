package io.eventsql.runner.plain;

import io.eventsql.benchmark.event.NumberedValues;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Jdbc;
import io.eventsql.runner.driver.PlainLoop;
import io.eventsql.runner.driver.PlainProgram;
import java.sql.Connection;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/**
 * The least that a durable log with group commit does, in plain JDBC: each connection appends whatever waits to the
 * partition of its own with one prepared statement and one commit, and one thread reads all partitions. Without
 * idempotence, leases, fencing, shards, or segments that follow each other. The option {@code connections} has the number
 * of connections.
 */
public final class GroupCommitProgram implements PlainProgram {

    /** The tables: those of the events, one per partition, and those of the heads and of the consumer's offsets. */
    record Tables(List<String> segments, String heads, String offsets) {}

    @Override
    public Rates run(DriverSettings settings, Load load) throws Exception {
        int connections = Integer.parseInt(settings.option("connections", "1"));
        try (PlainDatabase database = new PlainDatabase(settings)) {
            String stream = "group_commit_" + database.run();
            Tables tables =
                    new Tables(database.createTables(stream, connections), stream + "_head", stream + "_offset");
            try (Connection connection = database.connect()) {
                for (String table : List.of(tables.heads, tables.offsets)) {
                    Jdbc.execute(
                            connection,
                            "CREATE TABLE " + table
                                    + " (partition int PRIMARY KEY, next_offset bigint NOT NULL) WITH (fillfactor = 50)");
                    Jdbc.execute(
                            connection,
                            "INSERT INTO " + table + " SELECT generate_series(0, " + (connections - 1) + "), 0");
                }
            }
            return run(database, tables, load);
        }
    }

    private static Rates run(PlainDatabase database, Tables tables, Load load) throws Exception {
        NumberedValues numbered = new NumberedValues(database.run(), load.eventBytes());
        try (GroupCommit log = GroupCommit.start(database, tables)) {
            PlainLoop.Caller caller = () -> {
                byte[][] values = new byte[load.eventsPerCall()][];
                Arrays.setAll(values, i -> numbered.next());
                log.publish(values);
            };
            return PlainLoop.run(load, Collections.nCopies(load.callers(), caller), () -> {}, log::consumedEvents);
        }
    }
}
