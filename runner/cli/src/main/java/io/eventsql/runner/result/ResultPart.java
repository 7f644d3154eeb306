package io.eventsql.runner.result;

import com.fasterxml.jackson.annotation.JsonInclude;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One part of a run's result: named figures.
 *
 * @param name the name of what was measured
 * @param title what was measured, one line
 * @param tables the figures; those without a table of their own are in a first one without a name
 * @param settings the settings of the server that the figures depend on; empty if none are recorded
 * @param histograms latencies in microseconds by name, as base64 of HdrHistogram's compressed encoding
 * @param problems what makes the run fail, human-readable
 */
public record ResultPart(
        String name,
        String title,
        List<FigureTable> tables,
        @JsonInclude(JsonInclude.Include.NON_EMPTY) Map<String, String> settings,
        @JsonInclude(JsonInclude.Include.NON_EMPTY) Map<String, String> histograms,
        @JsonInclude(JsonInclude.Include.NON_EMPTY) List<String> problems) {
    /** A file omits what is empty. */
    static <T> T orEmpty(@Nullable T value, T empty) {
        return value == null ? empty : value;
    }

    public ResultPart {
        settings = orEmpty(settings, Map.of());
        histograms = orEmpty(histograms, Map.of());
        problems = orEmpty(problems, List.of());
    }
}
