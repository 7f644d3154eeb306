package io.eventsql.runner;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.runner.testing.ResultSchema;
import io.eventsql.runner.testing.TestDatabase;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** A database for the parts of the limits, and access to their results. */
@Timeout(120)
abstract class LimitsFixture {
    private static TestDatabase database;

    @TempDir
    private Path folder;

    private final StringWriter out = new StringWriter();
    final StringWriter err = new StringWriter();

    @BeforeAll
    static void createDatabase() throws SQLException {
        database = TestDatabase.create();
        TestDatabase.executeAsAdmin("GRANT pg_monitor, pg_checkpoint TO eventsql");
    }

    @AfterAll
    static void dropDatabase() throws SQLException {
        database.close();
    }

    /** Runs a part with numbers and checks that it prints and writes its report. */
    JsonNode limits(String... numbers) throws IOException {
        int status = run(
                database.environment(),
                Stream.of(numbers).map(number -> "--set=limits." + number).toArray(String[]::new));
        assertThat(status).as(err.toString()).isZero();
        Path result = folder.resolve("append/result.json");
        assertThat(out.toString()).contains(Files.readString(folder.resolve("append/report.txt")));
        ResultSchema.requireValid(result);
        return JsonMapper.shared().readTree(Files.readString(result));
    }

    /** Runs the first run of the workload, with other parts. */
    int run(Map<String, String> environment, String... settings) {
        List<String> arguments = new ArrayList<>(List.of("run", "limits", "--workloads=../workloads", "--only=append"));
        arguments.addAll(List.of(settings));
        arguments.addAll(List.of("--out=" + folder, "--git-commit=c0ffee", "--command=this test"));
        return Runner.commandLine(environment)
                .setOut(new PrintWriter(out, true))
                .setErr(new PrintWriter(err, true))
                .execute(arguments.toArray(String[]::new));
    }

    static String runId(JsonNode result) {
        return result.get("run_id").asString();
    }

    static JsonNode named(JsonNode array, String name) {
        for (JsonNode element : array) {
            if (element.get("name").asString().equals(name)) {
                return element;
            }
        }
        throw new AssertionError(name + " is not in " + names(array));
    }

    static List<String> names(JsonNode array) {
        List<String> names = new ArrayList<>();
        array.forEach(element -> names.add(element.get("name").asString()));
        return names;
    }

    static JsonNode part(JsonNode result, String part) {
        return named(result.get("parts"), part);
    }

    static List<String> tables(JsonNode result, String part) {
        return names(part(result, part).get("tables"));
    }

    static List<String> rows(JsonNode result, String part, String table) {
        return names(named(part(result, part).get("tables"), table).get("rows"));
    }

    /** Returns the figures of a row by column. */
    static JsonNode row(JsonNode result, String part, String table, String row) {
        return named(named(part(result, part).get("tables"), table).get("rows"), row)
                .get("figures");
    }

    static JsonNode figure(JsonNode result, String part, String table, String row, String column) {
        return row(result, part, table, row).get(column);
    }

    static double value(JsonNode result, String part, String table, String row, String column) {
        return figure(result, part, table, row, column).get("value").asDouble();
    }

    static long queryLong(String sql) throws SQLException {
        return Long.parseLong(query(sql));
    }

    static String query(String sql) throws SQLException {
        try (var connection = database.dataSource().getConnection();
                var statement = connection.createStatement();
                var row = statement.executeQuery(sql)) {
            row.next();
            return row.getString(1);
        }
    }
}
