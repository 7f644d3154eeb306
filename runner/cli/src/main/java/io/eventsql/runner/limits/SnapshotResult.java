package io.eventsql.runner.limits;

import io.eventsql.runner.measure.ErrorCount;
import io.eventsql.runner.measure.Histograms;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.Statistics;
import java.util.List;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * The result of the snapshot benchmark: publish latency at a steady rate, with and without a long-running snapshot.
 *
 * @param streams the results by number of partitions
 */
public record SnapshotResult(List<StreamResult> streams) {

    /** Returns the failed events of all runs. */
    long failedEvents() {
        return streams.stream()
                .mapToLong(stream ->
                        stream.without().failedEvents() + stream.with().failedEvents())
                .sum();
    }

    /**
     * The result for one number of partitions.
     *
     * @param partitions the number of partitions
     * @param without the run without a snapshot
     * @param with the run with a snapshot taken at its start
     * @param p99WithToWithout p99 of the whole run with a snapshot divided by that without; 0 if unknown
     * @param p99WithToWithoutLastTenth the same ratio for the last tenth of the time
     */
    public record StreamResult(
            int partitions, Run without, Run with, double p99WithToWithout, double p99WithToWithoutLastTenth) {

        static StreamResult of(int partitions, Run without, Run with) {
            return new StreamResult(
                    partitions,
                    without,
                    with,
                    Statistics.ratio(with.latencyMs().p99(), without.latencyMs().p99()),
                    Statistics.ratio(
                            with.tenths().getLast().latencyMs().p99(),
                            without.tenths().getLast().latencyMs().p99()));
        }
    }

    /**
     * The result of one run.
     *
     * @param events the acknowledged events
     * @param failedEvents the failed events
     * @param publishErrors the failures by exception class
     * @param latencyMs the time from the intended send to the acknowledgement, in milliseconds
     * @param p99LastToFirst p99 of the last tenth divided by that of the first; 0 if unknown
     * @param tenths the measurements by tenth of the time
     * @param snapshotAgeTransactions the number of transactions started since the snapshot, at the end; {@code null}
     *     without a snapshot
     * @param deadRows the dead rows at the end, according to the statistics, in the table that every append updates
     */
    public record Run(
            long events,
            long failedEvents,
            List<ErrorCount> publishErrors,
            Percentiles latencyMs,
            double p99LastToFirst,
            List<Tenth> tenths,
            @Nullable Long snapshotAgeTransactions,
            long deadRows) {

        static Run of(List<PhaseMeasurement> tenths, @Nullable Long snapshotAgeTransactions, long deadRows) {
            List<Histogram> histograms =
                    tenths.stream().map(PhaseMeasurement::latencyMicros).toList();
            List<Tenth> measured = tenths.stream().map(Tenth::of).toList();
            return new Run(
                    tenths.stream().mapToLong(PhaseMeasurement::publishedEvents).sum(),
                    tenths.stream().mapToLong(PhaseMeasurement::failedEvents).sum(),
                    tenths.stream().flatMap(tenth -> tenth.errors().stream()).toList(),
                    Percentiles.ofMicros(Histograms.merge(histograms)),
                    Statistics.ratio(
                            measured.getLast().latencyMs().p99(),
                            measured.getFirst().latencyMs().p99()),
                    measured,
                    snapshotAgeTransactions,
                    deadRows);
        }
    }

    /**
     * A tenth of a run's time.
     *
     * @param events the acknowledged events
     * @param latencyMs the time from the intended send to the acknowledgement, in milliseconds
     * @param latencyMicrosHistogram the same in microseconds as an encoded histogram, one value per event
     */
    public record Tenth(long events, Percentiles latencyMs, String latencyMicrosHistogram) {

        static Tenth of(PhaseMeasurement tenth) {
            return new Tenth(
                    tenth.publishedEvents(),
                    Percentiles.ofMicros(tenth.latencyMicros()),
                    Histograms.encode(tenth.latencyMicros()));
        }
    }
}
