package io.eventsql.runner.result;

import io.eventsql.runner.report.JsonFiles;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.series.RunSeries;
import java.io.IOException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The folder of one run. */
public final class RunFolder {
    private static final String RESULT = "result.json";

    private RunFolder() {}

    /**
     * Writes all files of a run; folders are made as needed.
     *
     * @param seconds the values of each second
     */
    public static void write(Path folder, RunResult result, RunSeries seconds) throws IOException {
        JsonFiles.write(folder.resolve(RESULT), result);
        JsonFiles.write(folder.resolve("report.txt"), String.join("\n", RunText.of(result)) + "\n");
        JsonFiles.write(folder.resolve("series.csv"), CsvFile.of(result.series().columns()));
        JsonFiles.write(folder.resolve("resources.csv"), CsvFile.of(columns(result.resources())));
        long startMicros = result.phases().stream()
                .filter(RunResult.PhaseFigures::measured)
                .mapToLong(RunResult.PhaseFigures::startedAtMicros)
                .findFirst()
                .orElse(0);
        HistogramLog.write(folder.resolve("publish.hlog"), result.series(), startMicros, seconds::publishMicros);
        HistogramLog.write(folder.resolve("end_to_end.hlog"), result.series(), startMicros, seconds::endToEndMicros);
    }

    private static Map<String, List<? extends @Nullable Object>> columns(ResourceSeries resources) {
        Map<String, List<? extends @Nullable Object>> columns = new LinkedHashMap<>();
        columns.put("t", resources.t());
        columns.putAll(resources.columns());
        return columns;
    }

    /**
     * The result of a run's folder.
     *
     * @throws IOException if there is none, or one of another kind
     */
    public static RunResult read(Path folder) throws IOException {
        return JsonFiles.read(folder.resolve(RESULT), RunResult.class);
    }

    /**
     * The report of a run's folder, made anew.
     *
     * @throws IOException if there is no result, or one of another kind
     */
    public static List<String> report(Path folder) throws IOException {
        Path file = folder.resolve(RESULT);
        boolean hasTrials = JsonFiles.tree(file).has("trials");
        return hasTrials ? TrialsText.of(JsonFiles.read(file, TrialsResult.class)) : RunText.of(read(folder));
    }
}
