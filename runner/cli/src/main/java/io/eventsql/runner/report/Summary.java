package io.eventsql.runner.report;

import com.fasterxml.jackson.annotation.JsonIgnore;
import com.fasterxml.jackson.annotation.JsonUnwrapped;
import io.eventsql.runner.consumption.ClockOffset;
import io.eventsql.runner.measure.ErrorCount;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.series.TimeSeries;
import io.eventsql.runner.workload.RunSettings;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What became of a whole run: {@code result.json}. The groups only order the fields; in the file all stand at the top.
 *
 * @param form what this file is
 * @param verdict whether the run was good
 * @param asked what was asked
 * @param counts what became of the events, over all runners
 * @param rates how fast it went, over all runners
 * @param latencies how long events took
 * @param machine what it ran on
 * @param perRunner each runner by itself
 * @param series second by second
 * @param resources what was used second by second
 * @param histograms all values behind the percentiles
 */
public record Summary(
        @JsonUnwrapped FileFormat fileFormat,
        @JsonUnwrapped Verdict verdict,
        @JsonUnwrapped Configuration configuration,
        @JsonUnwrapped Counts counts,
        @JsonUnwrapped Rates rates,
        @JsonUnwrapped Latencies latencies,
        @JsonUnwrapped Machine machine,
        List<RunnerSummary> perRunner,
        TimeSeries series,
        ResourceSeries resources,
        RawHistograms histograms) {

    /**
     * What this file is.
     *
     * @param format 2
     * @param kind always {@code publish}
     * @param workload the workload it belongs to; {@code null}: none
     */
    public record FileFormat(
            int format, String kind, @Nullable String workload) {}

    /**
     * Whether the run was good.
     *
     * @param run the run's id
     * @param passed nothing lost, duplicated, out of order, failed or late
     * @param problems what was wrong, for people
     * @param timedOut whether the consumer did not handle everything in time
     * @param interrupted whether the run was ended by Ctrl-C or SIGTERM: everything else is what it came to until then
     */
    public record Verdict(String run, boolean passed, List<String> problems, boolean timedOut, boolean interrupted) {}

    /**
     * What was asked.
     *
     * @param shards databases
     * @param partitions partitions of the stream on each
     * @param runners runners at the same time
     * @param members apps that share the consumer's partitions
     * @param rateAsked events/s over all runners; 0: as fast as possible
     * @param settings those of the first runner
     */
    public record Configuration(
            int shards, int partitions, int runners, int members, long rateAsked, RunSettings settings) {}

    /**
     * What became of the events, over all runners. Without warm-up, except where it says so.
     *
     * @param eventsAsked events to be published
     * @param eventsPublished events that were acknowledged
     * @param eventsConsumed different events the app has seen
     * @param eventsLost events asked but not seen by the app; of a run that ended early, events acknowledged but not seen
     * @param eventsDuplicated deliveries of an event that had been seen before
     * @param orderViolations events seen after a later one of the same key, each member by itself
     * @param partitionsOfSeveralMembers partitions that were handled by more than one member: order is not checked from
     *     one member to the next
     * @param eventsHandledBeforeIntended events that seem to have been handled before they were sent, because the clocks
     *     of two machines differ; their latency counts as 0
     * @param publishErrors events that failed, the warm-up's included
     * @param publishErrorsByClass the same by the class of the failure
     * @param warmupEvents events acknowledged in the warm-up
     * @param warmupEventsLost events acknowledged in the warm-up and not seen
     * @param warmupEventsDuplicated as above, in the warm-up
     * @param warmupOrderViolations as above, in the warm-up
     */
    public record Counts(
            long eventsAsked,
            long eventsPublished,
            long eventsConsumed,
            long eventsLost,
            long eventsDuplicated,
            long orderViolations,
            int partitionsOfSeveralMembers,
            long eventsHandledBeforeIntended,
            long publishErrors,
            List<ErrorCount> publishErrorsByClass,
            long warmupEvents,
            long warmupEventsLost,
            long warmupEventsDuplicated,
            long warmupOrderViolations) {}

    /**
     * How fast it went.
     *
     * @param publishRate the sum over the runners of events ÷ (last acknowledgement − first intended send), events/s
     * @param consumeRate all events ÷ (last event handled − first intended send), events/s
     * @param consumeAfterPublishMs from the last acknowledgement to the last event handled, milliseconds; a little below
     *     0 where the last event was handled before its publisher heard of it
     */
    public record Rates(double publishRate, double consumeRate, double consumeAfterPublishMs) {}

    /**
     * How long events took, milliseconds.
     *
     * @param publishLatencyMs from the intended send to the acknowledgement
     * @param serviceLatencyMs from the call to the acknowledgement
     * @param endToEndLatencyMs from the intended send to the handler
     * @param scheduleDelayMs from the intended send to the call; zero where the load has no rate
     */
    public record Latencies(
            Percentiles publishLatencyMs,
            Percentiles serviceLatencyMs,
            Percentiles endToEndLatencyMs,
            Percentiles scheduleDelayMs) {}

    /**
     * What it ran on. Settings that differ between shards are shown one after the other.
     *
     * @param fsync as the servers show it
     * @param synchronousCommit as the servers show it
     * @param postgresVersion of the servers
     * @param javaVersion of the runners
     * @param os name, version and architecture
     * @param provenance what the caller says about the run
     */
    public record Machine(
            String fsync,
            String synchronousCommit,
            String postgresVersion,
            String javaVersion,
            String os,
            @JsonUnwrapped Provenance provenance) {

        /** What {@link #os()} is here. */
        public static String thisSystem() {
            return String.join(
                    " ",
                    System.getProperty("os.name", ""),
                    System.getProperty("os.version", ""),
                    System.getProperty("os.arch", ""));
        }
    }

    /**
     * What only the caller knows.
     *
     * @param cpus processors of the machine
     * @param recycledWalMb megabytes of WAL files that each database was given before the run, as one in use has them
     * @param gitCommit what was measured
     * @param command how to measure it again
     * @param workload the workload it belongs to; {@code null}: none
     */
    public record Provenance(
            int cpus,
            int recycledWalMb,
            String gitCommit,
            String command,
            @JsonIgnore @Nullable String workload) {}

    /**
     * One runner.
     *
     * @param runner its number
     * @param eventsPublished events that were acknowledged
     * @param eventsConsumed different events of it the app has seen
     * @param eventsLost as for the whole run
     * @param publishedNotSeen how many more events were acknowledged than seen
     * @param eventsDuplicated as for the whole run
     * @param orderViolations as for the whole run
     * @param publishErrors as for the whole run
     * @param publishRate events/s
     * @param appClock how far the app's clock is ahead of this runner's: end-to-end latencies are wrong by that;
     *     {@code null} where they have not met
     * @param latencies milliseconds
     */
    public record RunnerSummary(
            int runner,
            long eventsPublished,
            long eventsConsumed,
            long eventsLost,
            long publishedNotSeen,
            long eventsDuplicated,
            long orderViolations,
            long publishErrors,
            double publishRate,
            @Nullable ClockOffset appClock,
            @JsonUnwrapped Latencies latencies) {}

    /**
     * All values in microseconds, as base64 of HdrHistogram's compressed encoding.
     *
     * @param publishLatencyMicros from the intended send to the acknowledgement
     * @param endToEndMicros from the intended send to the handler
     * @param scheduleDelayMicros from the intended send to the call
     */
    public record RawHistograms(String publishLatencyMicros, String endToEndMicros, String scheduleDelayMicros) {}
}
