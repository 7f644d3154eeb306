package io.eventsql.runner.result;

import io.eventsql.runner.report.JsonFiles;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.series.TimeSeries;
import java.io.IOException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import org.HdrHistogram.Histogram;
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

    /** Writes all files. Creates the folder as needed. */
    public void write(Path folder) throws IOException {
        JsonFiles.write(folder.resolve("series.csv"), CsvFile.of(seconds.columns()));
        writeResources(folder, resources);
        HistogramLog.write(folder.resolve("publish.hlog"), seconds, startMicros, publishMicros);
        HistogramLog.write(folder.resolve("end_to_end.hlog"), seconds, startMicros, endToEndMicros);
    }

    /** Writes only the resource usage, for runs without time series. */
    public static void writeResources(Path folder, ResourceSeries resources) throws IOException {
        JsonFiles.write(folder.resolve("resources.csv"), CsvFile.of(columns(resources)));
    }

    private static Map<String, List<? extends @Nullable Object>> columns(ResourceSeries resources) {
        Map<String, List<? extends @Nullable Object>> columns = new LinkedHashMap<>();
        columns.put("t", resources.t());
        columns.putAll(resources.columns());
        return columns;
    }
}
