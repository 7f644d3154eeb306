package io.eventsql.runner.result;

import io.eventsql.runner.measure.TimeSeries;
import io.eventsql.runner.sample.ResourceSeries;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogWriter;
import org.jspecify.annotations.Nullable;

/**
 * The time-series files of a run's folder: tables and histogram logs.
 *
 * @param seconds the time series
 * @param resources the resource usage during the run
 * @param startMicros the start of second 0 in epoch microseconds
 * @param publishMicros the publish latencies of a second; {@code null} if there are none
 * @param endToEndMicros the end-to-end latencies of a second; {@code null} if there are none
 */
public record SeriesFiles(
        TimeSeries seconds,
        ResourceSeries resources,
        long startMicros,
        IntFunction<@Nullable Histogram> publishMicros,
        IntFunction<@Nullable Histogram> endToEndMicros) {

    private static final double MICROS_PER_SECOND = 1e6;

    /** Writes all files. Creates the folder as needed. */
    public void write(Path folder) throws IOException {
        JsonFiles.write(folder.resolve("series.csv"), csv(seconds.columns()));
        writeResources(folder, resources);
        writeLog(folder.resolve("publish.hlog"), publishMicros);
        writeLog(folder.resolve("end_to_end.hlog"), endToEndMicros);
    }

    /** Writes only the resource usage, for runs without time series. */
    public static void writeResources(Path folder, ResourceSeries resources) {
        Map<String, List<? extends @Nullable Object>> columns = new LinkedHashMap<>();
        columns.put("t", resources.t());
        columns.putAll(resources.columns());
        JsonFiles.write(folder.resolve("resources.csv"), csv(columns));
    }

    /** @param columns the columns by name, all of the same length, without commas and quotes; missing values are empty */
    private static String csv(Map<String, List<? extends @Nullable Object>> columns) {
        StringBuilder text = new StringBuilder(String.join(",", columns.keySet())).append('\n');
        int rows = columns.values().stream().mapToInt(List::size).max().orElse(0);
        for (int row = 0; row < rows; row++) {
            int at = row;
            text.append(columns.values().stream()
                            .map(column -> Objects.toString(column.get(at), ""))
                            .collect(Collectors.joining(",")))
                    .append('\n');
        }
        return text.toString();
    }

    /** Writes an interval log of HdrHistogram: one interval per second, values in microseconds, the phase as tag. */
    private void writeLog(Path file, IntFunction<@Nullable Histogram> ofSecond) throws IOException {
        try (PrintStream out = new PrintStream(Files.newOutputStream(file), false, StandardCharsets.US_ASCII)) {
            HistogramLogWriter writer = new HistogramLogWriter(out);
            writer.outputComment("[one second each; values in microseconds; tag = phase]");
            writer.outputLogFormatVersion();
            out.format(Locale.ROOT, "#[StartTime: %.3f (seconds since epoch)]%n", startMicros / MICROS_PER_SECOND);
            writer.outputLegend();
            for (int t : seconds.t()) {
                Histogram histogram = ofSecond.apply(t);
                if (histogram != null) {
                    histogram.setTag(Objects.requireNonNullElse(seconds.phase().get(t), "after"));
                    // Prints the maximum in milliseconds.
                    writer.outputIntervalHistogram(t, t + 1.0, histogram, 1_000.0);
                }
            }
        }
    }
}
