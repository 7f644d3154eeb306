package io.eventsql.runner.result;

import static java.util.stream.Collectors.joining;

import java.nio.file.Path;
import java.util.function.Function;
import tools.jackson.databind.JsonNode;

/** Writes the trials of a result atomically, with the names and values that they have there. */
public final class TrialFiles {
    private TrialFiles() {}

    /** Writes {@code trials.jsonl}, one JSON object per line. */
    public static void writeLines(Path file, JsonNode trials) {
        JsonFiles.write(file, lines(trials, JsonNode::toString));
    }

    /** Writes {@code trials.csv}, a header and one row per trial. No value contains a comma. */
    public static void writeCsv(Path file, JsonNode trials) {
        String header = trials.isEmpty() ? "" : String.join(",", trials.get(0).propertyNames()) + "\n";
        JsonFiles.write(
                file,
                header
                        + lines(
                                trials,
                                trial -> trial.valueStream()
                                        .map(JsonNode::asString)
                                        .collect(joining(","))));
    }

    private static String lines(JsonNode trials, Function<JsonNode, String> line) {
        return trials.valueStream().map(trial -> line.apply(trial) + "\n").collect(joining());
    }
}
