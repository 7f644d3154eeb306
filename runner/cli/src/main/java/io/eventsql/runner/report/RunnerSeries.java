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
 * What one runner has measured second by second.
 *
 * @param seconds the table, without what only consumers know
 * @param publishMicrosHistograms the publish latencies of each second, encoded; {@code null} where there are none
 * @param resources what was used meanwhile
 */
public record RunnerSeries(
        TimeSeries seconds, List<@Nullable String> publishMicrosHistograms, ResourceSeries resources) {

    /** Takes it out of a series in which nothing is recorded any more. */
    public static RunnerSeries of(RunSeries series, TimeSeries seconds, ResourceSeries resources) {
        List<@Nullable String> histograms = new ArrayList<>();
        for (int t : seconds.t()) {
            Histogram micros = series.publishMicros(t);
            histograms.add(micros == null ? null : Histograms.encode(micros));
        }
        return new RunnerSeries(seconds, histograms, resources);
    }
}
