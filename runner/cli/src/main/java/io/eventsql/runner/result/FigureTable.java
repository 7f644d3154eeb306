package io.eventsql.runner.result;

import java.util.List;
import java.util.Map;

/**
 * Figures by row and column.
 *
 * @param name the name, unique in its part; may be empty
 * @param rows the rows in order
 */
public record FigureTable(String name, List<Row> rows) {
    /** The column of a table that has only one. */
    public static final String VALUE = "value";

    /**
     * One row.
     *
     * @param name the name, unique in its table
     * @param figures the figures by column; not every row has every column
     */
    public record Row(String name, Map<String, Figure> figures) {}

    /** Returns the columns in the order of their first figures. */
    List<String> columns() {
        return rows.stream()
                .flatMap(row -> row.figures().keySet().stream())
                .distinct()
                .toList();
    }
}
