package io.eventsql.runner.queries;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.TableDescriptor;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;

/** The tables of {@code positions.sql} in an environment that runs jobs in this JVM. */
final class FlinkTables {
    private static final List<String> TABLES = List.of("positions", "position_values");

    private final StreamExecutionEnvironment environment;
    private final StreamTableEnvironment tables;

    /**
     * @param file creates the tables
     * @param options replace those of the file, in all tables
     * @param settings of Flink
     */
    FlinkTables(Path file, Map<String, String> options, int parallelism, Map<String, String> settings) {
        environment = StreamExecutionEnvironment.createLocalEnvironment(parallelism, Configuration.fromMap(settings));
        environment.setParallelism(parallelism);
        tables = StreamTableEnvironment.create(environment);
        tables.getConfig().set("table.local-time-zone", "UTC");
        String set = options.entrySet().stream()
                .map(option -> "'" + option.getKey() + "' = '" + option.getValue() + "'")
                .collect(Collectors.joining(", "));
        for (String statement : Query.statements(file)) {
            if (statement.startsWith("CREATE")) {
                tables.executeSql(statement);
            }
        }
        TABLES.forEach(table -> tables.executeSql("ALTER TABLE " + table + " SET (" + set + ")"));
    }

    /** Returns the environment. */
    StreamTableEnvironment environment() {
        return tables;
    }

    /** Starts the job of the streams that were made from tables. */
    JobClient executeAsync() throws Exception {
        return environment.executeAsync();
    }

    Table table(String sql) {
        return tables.sqlQuery(sql);
    }

    /** Starts a query whose results are counted by Flink alone. */
    TableResult startToNowhere(String sql) {
        return table(sql)
                .insertInto(TableDescriptor.forConnector("blackhole").build())
                .execute();
    }
}
