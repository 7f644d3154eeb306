package io.eventsql.runner.result;

import com.fasterxml.jackson.annotation.JsonIgnore;
import com.fasterxml.jackson.annotation.JsonUnwrapped;
import io.eventsql.runner.consumption.StartBarrier;
import io.eventsql.runner.measure.ErrorCount;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.TimeSeries;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.spec.RunSettings;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The result of a whole run: {@code result.json}. The groups only structure the fields. They are unwrapped to the top
 * level.
 *
 * @param fileFormat the format of the file
 * @param verdict the verdict
 * @param configuration the requested configuration
 * @param counts the event counts of all runners
 * @param rates the rates of all runners
 * @param latencies the latencies
 * @param machine the environment of the run
 * @param conditions how busy the machine was, and how warm the JVMs were
 * @param perRunner the results by runner
 * @param series the time series
 * @param resources the resource usage by second
 * @param histograms the raw values of the percentiles
 */
public record Summary(
        @JsonUnwrapped FileFormat fileFormat,
        @JsonUnwrapped Verdict verdict,
        @JsonUnwrapped Configuration configuration,
        @JsonUnwrapped Counts counts,
        @JsonUnwrapped Rates rates,
        @JsonUnwrapped Latencies latencies,
        @JsonUnwrapped Machine machine,
        @JsonUnwrapped Conditions conditions,
        List<RunnerSummary> perRunner,
        TimeSeries series,
        ResourceSeries resources,
        RawHistograms histograms) {

    /**
     * The format of the file.
     *
     * @param format 2
     * @param kind always {@code publish}
     * @param workload the workload of the run; {@code null} if none
     */
    public record FileFormat(
            int format, String kind, @Nullable String workload) {}

    /**
     * The verdict on a run.
     *
     * @param run the run's id
     * @param passed whether no event was lost, duplicated, out of order, failed or late
     * @param problems the detected problems, human-readable
     * @param timedOut whether the consumer did not handle all events in time
     * @param interrupted whether Ctrl-C or SIGTERM aborted the run; all other values then cover the time before
     */
    public record Verdict(String run, boolean passed, List<String> problems, boolean timedOut, boolean interrupted) {}

    /**
     * The requested configuration.
     *
     * @param shards the number of databases
     * @param partitions the stream's partitions per shard
     * @param runners the number of concurrent runners
     * @param members the number of apps that share the consumer's partitions
     * @param rateAsked the requested rate of all runners in events/s; 0 for as fast as possible
     * @param settings the settings of the first runner
     */
    public record Configuration(
            int shards, int partitions, int runners, int members, long rateAsked, RunSettings settings) {}

    /**
     * The event counts of all runners, excluding the warm-up unless stated otherwise.
     *
     * @param eventsAsked the requested events
     * @param eventsPublished the acknowledged events
     * @param eventsConsumed the distinct events received by the app
     * @param eventsLost the requested events not received by the app; for an aborted run, the acknowledged events not
     *     received
     * @param eventsDuplicated the deliveries of events received before
     * @param orderViolations the events received after a later one of the same key, by the same member
     * @param partitionsOfSeveralMembers the partitions handled by more than one member; order is not checked across
     *     members
     * @param eventsHandledBeforeIntended the events apparently handled before they were sent, because the clocks of two
     *     machines differ; their latency counts as 0
     * @param publishErrors the failed events, including the warm-up
     * @param publishErrorsByClass the failures by exception class
     * @param warmupEvents the events acknowledged in the warm-up
     * @param warmupEventsLost the events acknowledged in the warm-up and not received
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
     * The rates of a run.
     *
     * @param publishRate the sum over the runners of events ÷ (last acknowledgement − first intended send), in events/s
     * @param consumeRate all events ÷ (last event handled − first intended send), in events/s
     * @param consumeAfterPublishMs the time from the last acknowledgement to the last event handled, in milliseconds;
     *     slightly negative if the last event was handled before its acknowledgement arrived
     */
    public record Rates(double publishRate, double consumeRate, double consumeAfterPublishMs) {}

    /**
     * The latencies of a run in milliseconds.
     *
     * @param publishLatencyMs the time from the intended send to the acknowledgement
     * @param serviceLatencyMs the time from the call to the acknowledgement
     * @param endToEndLatencyMs the time from the intended send to the handler
     * @param scheduleDelayMs the time from the intended send to the call; 0 if the load has no rate
     */
    public record Latencies(
            Percentiles publishLatencyMs,
            Percentiles serviceLatencyMs,
            Percentiles endToEndLatencyMs,
            Percentiles scheduleDelayMs) {}

    /**
     * The environment of a run. Settings that differ between shards are listed.
     *
     * @param fsync the value of {@code fsync}
     * @param synchronousCommit the value of {@code synchronous_commit}
     * @param postgresVersion the version of the servers
     * @param javaVersion the Java version of the runners
     * @param os the name, version and architecture of the operating system
     * @param provenance the metadata from the caller
     */
    public record Machine(
            String fsync,
            String synchronousCommit,
            String postgresVersion,
            String javaVersion,
            String os,
            @JsonUnwrapped Provenance provenance) {

        /** Returns the operating system of this machine, see {@link #os()}. */
        public static String thisSystem() {
            return String.join(
                    " ",
                    System.getProperty("os.name", ""),
                    System.getProperty("os.version", ""),
                    System.getProperty("os.arch", ""));
        }
    }

    /**
     * Metadata that only the caller knows.
     *
     * @param cpus the processors of the machine
     * @param recycledWalMb the megabytes of WAL files preallocated in each database before the run, as in a database in
     *     use
     * @param gitCommit the measured commit
     * @param command the command that reproduces the run
     * @param workload the workload of the run; {@code null} if none
     */
    public record Provenance(
            int cpus,
            int recycledWalMb,
            String gitCommit,
            String command,
            @JsonIgnore @Nullable String workload) {}

    /**
     * The result of one runner.
     *
     * @param runner the number of the runner
     * @param eventsPublished the acknowledged events
     * @param eventsConsumed the runner's distinct events received by the app
     * @param eventsLost as for the whole run
     * @param publishedNotSeen the acknowledged events minus the received events
     * @param eventsDuplicated as for the whole run
     * @param orderViolations as for the whole run
     * @param publishErrors as for the whole run
     * @param publishRate the publish rate in events/s
     * @param appClock the offset of the app's clock to this runner's, which is the error of end-to-end latencies;
     *     {@code null} if not measured
     * @param latencies the latencies in milliseconds
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
            StartBarrier.@Nullable ClockOffset appClock,
            @JsonUnwrapped Latencies latencies) {}

    /**
     * All values in microseconds, as base64 of HdrHistogram's compressed encoding.
     *
     * @param publishLatencyMicros the time from the intended send to the acknowledgement
     * @param endToEndMicros the time from the intended send to the handler
     * @param scheduleDelayMicros the time from the intended send to the call
     */
    public record RawHistograms(String publishLatencyMicros, String endToEndMicros, String scheduleDelayMicros) {}
}
