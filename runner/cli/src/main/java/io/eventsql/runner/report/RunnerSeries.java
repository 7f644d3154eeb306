package io.eventsql.runner.report;

import io.eventsql.runner.measure.Histograms;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.series.RunSeries;
import io.eventsql.runner.series.TimeSeries;
import java.util.ArrayList;
import java.util.List;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * The time series of one runner.
 *
 * @param seconds the table, without consumer columns
 * @param publishMicrosHistograms the encoded publish latencies of each second; {@code null} if there are none
 * @param resources the resource usage during the run
 */
public record RunnerSeries(
        TimeSeries seconds, List<@Nullable String> publishMicrosHistograms, ResourceSeries resources) {

    /** Creates the series from a finished recording. */
    public static RunnerSeries of(RunSeries series, TimeSeries seconds, ResourceSeries resources) {
        List<@Nullable String> histograms = new ArrayList<>();
        for (int t : seconds.t()) {
            Histogram micros = series.publishMicros(t);
            histograms.add(micros == null ? null : Histograms.encode(micros));
        }
        return new RunnerSeries(seconds, histograms, resources);
    }
}
