package io.eventsql.runner.trials;

import static java.util.stream.Collectors.joining;

import io.eventsql.runner.report.JsonFiles;
import java.nio.file.Path;
import java.util.function.Function;
import tools.jackson.databind.JsonNode;
import java.util.List;

/** Writes the trials of a run atomically, with the names and values of its result. */
public final class TrialFiles {
    private TrialFiles() {}

    /** Writes {@code trials.jsonl}, one JSON object per line. */
    public static void writeLines(Path file, List<BlastTrial> trials) {
        JsonFiles.write(file, lines(trials, JsonNode::toString));
    }

    /** Writes {@code trials.csv}, a header and one row per trial. No value contains a comma. */
    public static void writeCsv(Path file, List<SweepTrial> trials) {
        String header = trials.isEmpty()
                ? ""
                : String.join(",", JsonFiles.toTree(trials.getFirst()).propertyNames()) + "\n";
        JsonFiles.write(
                file,
                header + lines(trials, trial -> trial.valueStream().map(JsonNode::asString).collect(joining(","))));
    }

    private static String lines(List<?> trials, Function<JsonNode, String> line) {
        return trials.stream()
                .map(trial -> line.apply(JsonFiles.toTree(trial)) + "\n")
                .collect(joining());
    }
}
