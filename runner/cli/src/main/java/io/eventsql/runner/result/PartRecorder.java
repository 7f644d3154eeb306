package io.eventsql.runner.result;

import io.eventsql.runner.measure.ErrorCount;
import io.eventsql.runner.measure.Histograms;
import io.eventsql.runner.measure.Percentiles;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.HdrHistogram.Histogram;

/** Collects the figures of one part of a result. Tables, rows and columns appear in the order of their first figure. */
public final class PartRecorder {
    private final String name;
    private final String title;
    private final Map<String, Map<String, Map<String, Figure>>> tables = new LinkedHashMap<>();
    private final Map<String, String> settings = new LinkedHashMap<>();
    private final Map<String, String> histograms = new LinkedHashMap<>();
    private final List<String> problems = new ArrayList<>();

    public PartRecorder(String name, String title) {
        this.name = name;
        this.title = title;
    }

    /** Adds a figure to a table. */
    public PartRecorder add(String table, String row, String column, Figure figure) {
        tables.computeIfAbsent(table, added -> new LinkedHashMap<>())
                .computeIfAbsent(row, added -> new LinkedHashMap<>())
                .put(column, figure);
        return this;
    }

    /** Adds a figure that belongs to no table. */
    public PartRecorder add(String figureName, Figure figure) {
        return add("", figureName, FigureTable.VALUE, figure);
    }

    /** Adds the percentiles of a latency to a row, each column with a prefix. */
    public PartRecorder addLatency(String table, String row, String prefix, Percentiles latency) {
        return add(table, row, prefix + "p50_ms", Figure.of(latency.p50(), "ms"))
                .add(table, row, prefix + "p99_ms", Figure.of(latency.p99(), "ms"))
                .add(table, row, prefix + "max_ms", Figure.of(latency.max(), "ms"));
    }

    /** Adds all values of a latency in microseconds. */
    public PartRecorder addHistogram(String histogramName, Histogram micros) {
        histograms.put(histogramName, Histograms.encode(micros));
        return this;
    }

    /** Adds the settings of the server that the figures depend on. */
    public PartRecorder addSettings(Map<String, String> ofServer) {
        settings.putAll(ofServer);
        return this;
    }

    /** Adds what makes the run fail. */
    public PartRecorder addProblem(String problem) {
        problems.add(problem);
        return this;
    }

    /** Adds a problem if a number that should be 0 is not. */
    public PartRecorder requireNone(long number, String what) {
        if (number != 0) {
            problems.add(number + " " + what);
        }
        return this;
    }

    /** Adds a problem for each class of failed publishes. */
    public PartRecorder requireNoErrors(List<ErrorCount> errors, String where) {
        errors.forEach(error -> problems.add(error.events() + " events " + where + " failed with " + error.errorClass()
                + ": " + error.firstMessage()));
        return this;
    }

    /** Returns what was added so far. */
    public ResultPart part() {
        List<FigureTable> all = new ArrayList<>();
        tables.forEach((table, rows) -> all.add(new FigureTable(
                table,
                rows.entrySet().stream()
                        .map(row -> new FigureTable.Row(row.getKey(), row.getValue()))
                        .toList())));
        return new ResultPart(name, title, all, settings, histograms, problems);
    }
}
