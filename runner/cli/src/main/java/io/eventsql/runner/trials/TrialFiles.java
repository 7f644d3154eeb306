package io.eventsql.runner.trials;

import io.eventsql.runner.report.JsonFiles;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import tools.jackson.databind.MapperFeature;
import tools.jackson.databind.PropertyNamingStrategies;
import tools.jackson.databind.json.JsonMapper;

/** Writes the trials of a run atomically. */
public final class TrialFiles {
    private static final JsonMapper LINES = JsonMapper.builder()
            .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
            .disable(MapperFeature.SORT_PROPERTIES_ALPHABETICALLY)
            .build();

    private TrialFiles() {}

    /** Writes {@code trials.jsonl}, one JSON object per line. */
    public static void writeLines(Path file, List<BlastTrial> trials) {
        JsonFiles.write(
                file,
                trials.stream()
                        .map(trial -> LINES.writeValueAsString(trial) + "\n")
                        .collect(Collectors.joining()));
    }

    /** Writes {@code trials.csv}, a header and one row per trial. */
    public static void writeCsv(Path file, List<SweepTrial> trials) {
        JsonFiles.write(
                file,
                trials.stream()
                        .map(trial -> trial.csv() + "\n")
                        .collect(Collectors.joining("", SweepTrial.CSV_HEADER + "\n", "")));
    }
}
