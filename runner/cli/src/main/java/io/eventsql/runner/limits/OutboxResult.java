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
 * Publishing inside transactions and plainly at the same time, without and with an old snapshot.
 *
 * @param without the run without one
 * @param with the run with one that was taken when it began
 * @param p99WithToWithout p99 of plain publishes, with in parts of without; 0 where unknown
 * @param outboxBytesLastToSecondTenth in the run with a snapshot: the outbox's largest size in the last tenth of the time
 *     in parts of that in the second one, when it has its working size
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

    /** Whether no publish failed and each committed event got into its stream, once. */
    boolean passed() {
        return Stream.of(without, with)
                .allMatch(run -> run.errors().isEmpty() && run.eventsInStream() == run.transactions());
    }

    /**
     * One run.
     *
     * @param plainEvents events published plainly and acknowledged
     * @param plainLatencyMs from the intended call to the acknowledgement, milliseconds
     * @param transactions transactions that published one event each and were committed, warm-up included
     * @param transactionLatencyMs from the intended begin to the end of the commit, without the warm-up
     * @param eventsInStream events of the transactions' stream, at the end, once the outbox was empty
     * @param errors what failed, plain and in transactions
     * @param tenths each tenth of the time
     * @param snapshotAgeTransactions how many transactions had begun since the snapshot, at the end; {@code null}: there
     *     was none
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
     * @param outboxBytesMax the largest size of the tables that are published to, indexes included
     * @param outboxEventsMax the most events that were committed and not yet in their stream
     */
    public record Tenth(Percentiles plainLatencyMs, long outboxBytesMax, long outboxEventsMax) {

        static Tenth of(PhaseMeasurement plain, OutboxSampler.Tenth outbox) {
            return new Tenth(
                    Percentiles.ofMicros(plain.latencyMicros()), outbox.outboxBytesMax(), outbox.outboxEventsMax());
        }
    }

    static Percentiles all(List<PhaseMeasurement> tenths) {
        List<Histogram> histograms =
                tenths.stream().map(PhaseMeasurement::latencyMicros).toList();
        return Percentiles.ofMicros(Histograms.merge(histograms));
    }
}
