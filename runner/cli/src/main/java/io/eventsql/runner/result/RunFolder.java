package io.eventsql.runner.result;

import io.eventsql.runner.report.JsonFiles;
import io.eventsql.runner.series.RunSeries;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/** The folder of one run. */
public final class RunFolder {
    private static final String RESULT = "result.json";

    private RunFolder() {}

    /**
     * Writes all files of a run. Creates folders as needed.
     *
     * @param seconds the values of each second
     */
    public static void write(Path folder, RunResult result, RunSeries seconds) throws IOException {
        JsonFiles.write(folder.resolve(RESULT), result);
        JsonFiles.write(folder.resolve("report.txt"), String.join("\n", RunText.of(result)) + "\n");
        long startMicros = result.phases().stream()
                .filter(RunResult.PhaseMetrics::measured)
                .mapToLong(RunResult.PhaseMetrics::startedAtMicros)
                .findFirst()
                .orElse(0);
        new SeriesFiles(
                        result.series(),
                        result.resources(),
                        startMicros,
                        seconds::publishMicros,
                        seconds::endToEndMicros)
                .write(folder);
    }

    /**
     * Reads the result in a run's folder.
     *
     * @throws IOException if the result is missing or of another kind
     */
    public static RunResult read(Path folder) throws IOException {
        return JsonFiles.read(folder.resolve(RESULT), RunResult.class);
    }

    /**
     * Renders the report from the result in a run's folder.
     *
     * @throws IOException if the result is missing or of another kind
     */
    public static List<String> report(Path folder) throws IOException {
        Path file = folder.resolve(RESULT);
        boolean hasTrials = JsonFiles.readTree(file).has("trials");
        return hasTrials ? TrialsText.of(JsonFiles.read(file, TrialsResult.class)) : RunText.of(read(folder));
    }
}
