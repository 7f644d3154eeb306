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
 * How long publishing took at a steady rate, without and with an old snapshot.
 *
 * @param streams by the number of partitions
 */
public record SnapshotResult(List<StreamResult> streams) {

    /** Events that failed in any run. */
    long failedEvents() {
        return streams.stream()
                .mapToLong(stream ->
                        stream.without().failedEvents() + stream.with().failedEvents())
                .sum();
    }

    /**
     * Streams of one number of partitions.
     *
     * @param partitions that number
     * @param without the run without an old snapshot
     * @param with the run with one that was taken when it began
     * @param p99WithToWithout p99 of the whole run, with in parts of without; 0 where unknown
     * @param p99WithToWithoutLastTenth the same of the last tenth of the time
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
     * One run.
     *
     * @param events events that were acknowledged
     * @param failedEvents events that were not
     * @param publishErrors why, by the class of the failure
     * @param latencyMs from the intended send to the acknowledgement, milliseconds
     * @param p99LastToFirst p99 of the last tenth in parts of the first one's; 0 where unknown
     * @param tenths each tenth of the time
     * @param snapshotAgeTransactions how many transactions had begun since the snapshot, at the end; {@code null}: there
     *     was none
     * @param deadRows dead versions in the table that is written by each append and cleaned all the time, at the end, as
     *     the statistics have them
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
     * @param events events that were acknowledged
     * @param latencyMs from the intended send to the acknowledgement, milliseconds
     * @param latencyMicrosHistogram the same in microseconds, encoded, one value an event
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
