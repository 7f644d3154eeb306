package io.eventsql.runner.consumption;

import io.eventsql.runner.consumption.RunReport.PhaseReport;
import io.eventsql.runner.measure.Histograms;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * The end-to-end latencies of all measured events by the second in which they were handled.
 *
 * @param endToEndMicros the latencies from the intended send to the handler by epoch second
 */
public record LatenciesBySecond(Map<Long, Histogram> endToEndMicros) {

    /**
     * Merges the seconds of several members.
     *
     * @param seen the members' reports with detail
     * @throws IllegalArgumentException if a histogram is invalid
     */
    static LatenciesBySecond of(List<RunReport> seen) {
        Map<Long, Histogram> all = new TreeMap<>();
        seen.stream()
                .flatMap(app -> app.runners().stream())
                .map(RunReport.RunnerReport::measured)
                .map(PhaseReport::endToEndMicrosBySecond)
                .forEach(seconds ->
                        seconds.forEach((second, encoded) -> all.computeIfAbsent(second, missing -> Histograms.create())
                                .add(Histograms.decode(encoded))));
        return new LatenciesBySecond(all);
    }

    /** Returns whether no event was handled. */
    public boolean isEmpty() {
        return endToEndMicros.isEmpty();
    }

    /** Returns the latencies of an epoch second; {@code null} if there are none. */
    public @Nullable Histogram endToEndMicros(long second) {
        return endToEndMicros.get(second);
    }
}
