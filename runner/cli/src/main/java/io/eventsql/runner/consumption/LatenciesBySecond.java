package io.eventsql.runner.consumption;

import io.eventsql.runner.consumption.RunReport.PhaseReport;
import io.eventsql.runner.measure.Histograms;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * The measured events that were handled in each second, by all members and of all runners.
 *
 * @param endToEndMicros the latencies from the intended time to the handler, by seconds since 1970
 */
public record LatenciesBySecond(Map<Long, Histogram> endToEndMicros) {

    /**
     * Unites the seconds of several members.
     *
     * @param seen what they have seen, with detail
     * @throws IllegalArgumentException if a histogram is not understood
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

    /** Whether anything was handled at all. */
    public boolean isEmpty() {
        return endToEndMicros.isEmpty();
    }

    /** The latencies of a second since 1970; {@code null} where there are none. */
    public @Nullable Histogram endToEndMicros(long second) {
        return endToEndMicros.get(second);
    }
}
