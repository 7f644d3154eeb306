package io.eventsql.runner.result;

import io.eventsql.runner.measure.RunSeries;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;

/** The folder of one run. */
public final class RunFolder {
    private static final String RESULT = "result.json";

    private RunFolder() {}

    /** Writes the result and the report of a run without time series into its folder. */
    public static void write(Path folder, RunResult result) {
        writeFile(folder.resolve(RESULT), result);
    }

    /** Writes the result to a file and the report next to it. Returns the lines of the report. */
    public static List<String> writeFile(Path file, RunResult result) {
        List<String> report = RunText.of(result);
        JsonFiles.write(file, result);
        JsonFiles.write(file.resolveSibling("report.txt"), String.join("\n", report) + "\n");
        return report;
    }

    /**
     * Writes all files of a run with phases. Creates folders as needed.
     *
     * @param seconds the values of each second
     */
    public static void write(Path folder, RunResult result, RunSeries seconds) throws IOException {
        write(folder, result);
        long startMicros = result.phases().stream()
                .filter(RunResult.PhaseMetrics::measured)
                .mapToLong(RunResult.PhaseMetrics::startedAtMicros)
                .findFirst()
                .orElse(0);
        new SeriesFiles(
                        Objects.requireNonNull(result.series()),
                        Objects.requireNonNull(result.resources()),
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
        return RunText.of(read(folder));
    }
}
