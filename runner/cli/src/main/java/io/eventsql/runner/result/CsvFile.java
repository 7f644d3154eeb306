package io.eventsql.runner.result;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Formats a table as comma-separated values. Missing values are empty. */
final class CsvFile {
    private CsvFile() {}

    /** @param columns the columns by name, all of the same length, without commas and quotes */
    static String of(Map<String, ? extends List<? extends @Nullable Object>> columns) {
        StringBuilder text = new StringBuilder(String.join(",", columns.keySet())).append('\n');
        int rows = columns.values().stream().mapToInt(List::size).max().orElse(0);
        for (int row = 0; row < rows; row++) {
            int at = row;
            text.append(columns.values().stream()
                            .map(column -> field(column.get(at)))
                            .collect(Collectors.joining(",")))
                    .append('\n');
        }
        return text.toString();
    }

    private static String field(@Nullable Object value) {
        return value == null ? "" : value.toString();
    }
}
