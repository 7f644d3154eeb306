package io.eventsql.runner.queries;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A query over the positions.
 *
 * @param name the name of its file
 * @param sql for Flink
 * @param batchSql the same for PostgreSQL, over the events of one shard
 */
record Query(String name, String sql, String batchSql) {
    /** In the order of the report. */
    private static final List<String> NAMES = List.of(
            "pass-through",
            "filter-100",
            "filter-50",
            "filter-25",
            "tumbling-1s",
            "sliding-1s",
            "sliding-1min",
            "session",
            "aggregate-per-key",
            "two-step-pattern");

    /** Returns all queries. */
    static List<Query> all(Path folder) {
        return NAMES.stream()
                .map(name -> new Query(
                        name,
                        statements(folder.resolve(name + ".sql")).getFirst(),
                        statements(folder.resolve("postgresql").resolve(name + ".sql"))
                                .getFirst()))
                .toList();
    }

    /** Returns the statements of a file without comments; each ends with a semicolon at the end of a line. */
    static List<String> statements(Path file) {
        try {
            String text = Files.readAllLines(file).stream()
                    .filter(line -> !line.startsWith("--"))
                    .collect(Collectors.joining("\n"));
            return Stream.of(text.split(";\\s*(\n|$)", -1))
                    .map(String::strip)
                    .filter(s -> !s.isEmpty())
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public String toString() {
        return name;
    }
}
