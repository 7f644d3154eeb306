package io.eventsql.runner.limits;

import io.eventsql.runner.measure.ErrorCount;
import io.eventsql.runner.measure.Histograms;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.PhaseMeasurement;
import io.eventsql.runner.measure.Statistics;
import java.util.List;
import java.util.stream.Stream;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * The result of the outbox benchmark: concurrent transactional and direct publishing, with and without a long-running
 * snapshot.
 *
 * @param without the run without a snapshot
 * @param with the run with a snapshot taken at its start
 * @param p99WithToWithout p99 of direct publishes with a snapshot divided by that without; 0 if unknown
 * @param outboxBytesLastToSecondTenth with a snapshot, the maximum outbox size in the last tenth of the time divided by
 *     that in the second tenth, when it has reached its working size
 */
public record OutboxResult(Run without, Run with, double p99WithToWithout, double outboxBytesLastToSecondTenth) {

    static OutboxResult of(Run without, Run with) {
        return new OutboxResult(
                without,
                with,
                Statistics.ratio(
                        with.plainLatencyMs().p99(), without.plainLatencyMs().p99()),
                Statistics.ratio((double) with.tenths().getLast().outboxBytesMax(), (double)
                        with.tenths().get(1).outboxBytesMax()));
    }

    /** Returns whether no publish failed and each committed event was stored in its stream exactly once. */
    boolean passed() {
        return Stream.of(without, with)
                .allMatch(run -> run.errors().isEmpty() && run.eventsInStream() == run.transactions());
    }

    /**
     * The result of one run.
     *
     * @param plainEvents the directly published and acknowledged events
     * @param plainLatencyMs the time from the intended call to the acknowledgement, in milliseconds
     * @param transactions the committed transactions with one event each, including the warm-up
     * @param transactionLatencyMs the time from the intended start to the end of the commit, excluding the warm-up
     * @param eventsInStream the events in the transactions' stream after the outbox was emptied
     * @param errors the failures of direct and transactional publishes
     * @param tenths the measurements by tenth of the time
     * @param snapshotAgeTransactions the number of transactions started since the snapshot, at the end; {@code null}
     *     without a snapshot
     */
    public record Run(
            long plainEvents,
            Percentiles plainLatencyMs,
            long transactions,
            Percentiles transactionLatencyMs,
            long eventsInStream,
            List<ErrorCount> errors,
            List<Tenth> tenths,
            @Nullable Long snapshotAgeTransactions) {}

    /**
     * A tenth of a run's time.
     *
     * @param plainLatencyMs as {@link Run#plainLatencyMs}
     * @param outboxBytesMax the maximum size of the outbox tables, including indexes
     * @param outboxEventsMax the maximum number of committed events not yet relayed
     */
    public record Tenth(Percentiles plainLatencyMs, long outboxBytesMax, long outboxEventsMax) {

        static Tenth of(PhaseMeasurement plain, OutboxSampler.Tenth outbox) {
            return new Tenth(
                    Percentiles.ofMicros(plain.latencyMicros()), outbox.outboxBytesMax(), outbox.outboxEventsMax());
        }
    }

    static Percentiles mergedLatencies(List<PhaseMeasurement> tenths) {
        List<Histogram> histograms =
                tenths.stream().map(PhaseMeasurement::latencyMicros).toList();
        return Percentiles.ofMicros(Histograms.merge(histograms));
    }
}
