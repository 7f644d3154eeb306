package io.eventsql.runner.result;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Renders the parts of a result as text: each table with a line per row, its columns as wide as their figures. */
final class PartText {
    private static final String GAP = "  ";

    private PartText() {}

    /** Returns the lines of one part. */
    static List<String> of(ResultPart part) {
        List<String> lines = new ArrayList<>();
        boolean once = part.tables().stream()
                .flatMap(table -> table.rows().stream())
                .flatMap(row -> row.figures().values().stream())
                .allMatch(figure -> figure.rounds() == null);
        lines.add(part.name().toUpperCase(Locale.ROOT) + ": " + part.title() + (once ? "; one run" : ""));
        part.tables().forEach(table -> lines.addAll(table(table)));
        if (!part.settings().isEmpty()) {
            lines.add(part.settings().toString());
        }
        return lines;
    }

    private static List<String> table(FigureTable table) {
        List<String> columns = table.columns();
        List<List<String>> cells = new ArrayList<>();
        if (!columns.equals(List.of(FigureTable.VALUE))) {
            List<String> head = new ArrayList<>(List.of(table.name()));
            head.addAll(columns);
            cells.add(head);
        } else if (!table.name().isEmpty()) {
            cells.add(List.of(table.name(), ""));
        }
        for (FigureTable.Row row : table.rows()) {
            List<String> line = new ArrayList<>(List.of(row.name()));
            columns.forEach(column -> line.add(cell(row, column)));
            cells.add(line);
        }
        return aligned(cells);
    }

    /** Names of columns and rows usually end with the unit; then it is not repeated. */
    private static String cell(FigureTable.Row row, String column) {
        Figure figure = row.figures().get(column);
        if (figure == null) {
            return "";
        }
        String unit = figure.unit();
        boolean named = unit.isEmpty()
                || column.endsWith("_" + unit)
                || row.name().endsWith("_" + unit)
                || (unit.equals("events/s") && (column + row.name()).contains("events_per_second"));
        return figure.text() + (named ? "" : " " + unit);
    }

    private static List<String> aligned(List<List<String>> cells) {
        int columns = cells.stream().mapToInt(List::size).max().orElse(0);
        int[] widths = new int[columns];
        cells.forEach(line -> {
            for (int i = 0; i < line.size(); i++) {
                widths[i] = Math.max(widths[i], line.get(i).length());
            }
        });
        return cells.stream()
                .map(line -> {
                    StringBuilder text = new StringBuilder();
                    for (int i = 0; i < line.size(); i++) {
                        String format =
                                i == 0 ? "%-" + Math.max(1, widths[i]) + "s" : GAP + "%" + Math.max(1, widths[i]) + "s";
                        text.append(String.format(Locale.ROOT, format, line.get(i)));
                    }
                    return text.toString().stripTrailing();
                })
                .toList();
    }
}
