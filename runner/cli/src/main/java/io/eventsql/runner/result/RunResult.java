package io.eventsql.runner.result;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonUnwrapped;
import io.eventsql.runner.database.DatabaseInfo;
import io.eventsql.runner.measure.ErrorCount;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.measure.Statistics;
import io.eventsql.runner.measure.TimeSeries;
import io.eventsql.runner.phases.ConsumerCounts;
import io.eventsql.runner.phases.ReplayerCounts;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.spec.RunSpec;
import io.eventsql.runner.spec.WorkloadKind;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/**
 * The result of one run of a workload: {@code result.json}. Some groups only structure the fields. They are unwrapped
 * to the top level.
 *
 * @param format 2
 * @param identity the identity of the run
 * @param verdict the verdict
 * @param settings the specification of the run, with all defaults
 * @param driver the measured system
 * @param machine the machine of the runner
 * @param databases the databases of the environment; may be empty
 * @param phases the phases in order
 * @param consumers the consumers of each stream
 * @param replayers the replayers of each stream
 * @param trials the trials of kind {@code blast} or {@code sweep}, each a {@link
 *     io.eventsql.runner.trials.BlastTrial} or {@link io.eventsql.runner.trials.SweepTrial}; otherwise {@code null}
 * @param copyLimit a plain COPY of the same events as in the trials; {@code null} if not measured
 * @param parts the parts of kind {@code limits} or {@code queries}; otherwise {@code null}
 * @param search the search, for kind {@code search}
 * @param stress the stress analysis, if a phase was a multiple above 1 of an earlier one
 * @param series the time series of phases; otherwise {@code null}
 * @param resources the resource usage by second; {@code null} if it was not sampled
 * @param histograms the values of all measured phases; {@code null} without phases
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public record RunResult(
        int format,
        @JsonUnwrapped Identity identity,
        @JsonUnwrapped Verdict verdict,
        RunSpec settings,
        DriverInfo driver,
        Machine machine,
        List<DatabaseInfo> databases,
        List<PhaseMetrics> phases,
        List<ConsumerCounts> consumers,
        List<ReplayerCounts> replayers,
        @Nullable JsonNode trials,
        @Nullable CopyLimit copyLimit,
        @Nullable List<ResultPart> parts,
        @Nullable SearchResult search,
        @Nullable StressResult stress,
        @Nullable TimeSeries series,
        @Nullable ResourceSeries resources,
        @Nullable RawHistograms histograms) {
    public static final int FORMAT = 2;

    /** A file omits what does not belong to its kind. */
    public RunResult {
        phases = ResultPart.orEmpty(phases, List.of());
        consumers = ResultPart.orEmpty(consumers, List.of());
        replayers = ResultPart.orEmpty(replayers, List.of());
    }

    /** Returns the result of trials. */
    public static RunResult ofTrials(
            Identity identity,
            Verdict verdict,
            RunSpec settings,
            DriverInfo driver,
            Machine machine,
            List<DatabaseInfo> databases,
            JsonNode trials,
            @Nullable CopyLimit copyLimit,
            ResourceSeries resources) {
        return new RunResult(
                FORMAT, identity, verdict, settings, driver, machine, databases, List.of(), List.of(), List.of(),
                trials, copyLimit, null, null, null, null, resources, null);
    }

    /** Returns the result of parts. */
    public static RunResult ofParts(
            Identity identity,
            Verdict verdict,
            RunSpec settings,
            DriverInfo driver,
            Machine machine,
            List<DatabaseInfo> databases,
            List<ResultPart> parts) {
        return new RunResult(
                FORMAT, identity, verdict, settings, driver, machine, databases, List.of(), List.of(), List.of(), null,
                null, parts, null, null, null, null, null);
    }

    /**
     * The identity of a run.
     *
     * @param workload the name of the workload
     * @param run the name of the run
     * @param runId the id that its events carry
     * @param kind the kind of workload
     * @param description the description of the workload
     * @param command the command that reproduces the run
     * @param gitCommit the measured commit
     * @param startedAt the start time in UTC
     * @param finishedAt the end time in UTC
     */
    public record Identity(
            String workload,
            String run,
            String runId,
            WorkloadKind kind,
            String description,
            String command,
            String gitCommit,
            String startedAt,
            String finishedAt) {}

    /**
     * The verdict on a run.
     *
     * @param passed whether no event was lost, duplicated, out of order, failed or late, and the run was not aborted
     * @param interrupted whether Ctrl-C or SIGTERM aborted the run; all other values then cover the time before
     * @param problems the detected problems, human-readable
     */
    public record Verdict(boolean passed, boolean interrupted, List<String> problems) {}

    /**
     * The measured system and its guarantees.
     *
     * @param name the name of the driver
     * @param version the version of the server
     * @param durability see {@link io.eventsql.runner.driver.Guarantees}
     * @param order likewise
     * @param delivery likewise
     */
    public record DriverInfo(String name, String version, String durability, String order, String delivery) {}

    /**
     * The machine of the runner.
     *
     * @param cpus the processors
     * @param memoryMb the memory in 10^6 bytes; 0 if unknown
     * @param os the name, version and architecture of the operating system
     * @param javaVersion the Java version of the runner
     * @param recycledWalMb the megabytes of WAL files preallocated in each database; {@code null} if unknown
     */
    public record Machine(
            int cpus,
            long memoryMb,
            String os,
            String javaVersion,

            @JsonInclude(JsonInclude.Include.NON_NULL) @Nullable
            Integer recycledWalMb) {
        private static final double BYTES_PER_MB = 1e6;

        /** Returns this machine. */
        public static Machine ofThis(int cpus, @Nullable Integer recycledWalMb) {
            long memoryMb = ManagementFactory.getOperatingSystemMXBean()
                            instanceof com.sun.management.OperatingSystemMXBean system
                    ? Math.round(system.getTotalMemorySize() / BYTES_PER_MB)
                    : 0;
            return new Machine(
                    cpus,
                    memoryMb,
                    Summary.Machine.thisSystem(),
                    System.getProperty("java.version", "unknown"),
                    recycledWalMb);
        }
    }

    /**
     * The metrics of a phase. Rates are events/s from the first intended send to the last acknowledgement or delivery.
     *
     * @param name the name in the workload
     * @param measured {@code false} for a warm-up
     * @param startedAtMicros the start time in epoch microseconds
     * @param seconds the duration
     * @param offeredRate the requested rate of an open loop, or the rate that callers sent
     * @param eventsSent the events of calls that were made
     * @param eventsPublished the acknowledged events
     * @param eventsFailed the failed events
     * @param eventsMissed the events of missed slots
     * @param errors the failures by exception class
     * @param publishRate the acknowledged events per second
     * @param publishMbPerSecond the same in 10^6 bytes of values per second
     * @param consumeRate the events per second delivered to all consumers together
     * @param publishLatencyMs the time from the intended send to the acknowledgement
     * @param serviceLatencyMs the time from the call to the acknowledgement
     * @param scheduleDelayMs the time from the intended send to the call; {@code null} for callers, which have no
     *     schedule
     * @param endToEndLatencyMs the time from the intended send to the consumer; {@code null} without consumers
     */
    public record PhaseMetrics(
            String name,
            boolean measured,
            long startedAtMicros,
            double seconds,
            double offeredRate,
            long eventsSent,
            long eventsPublished,
            long eventsFailed,
            long eventsMissed,
            List<ErrorCount> errors,
            double publishRate,
            double publishMbPerSecond,
            double consumeRate,
            Percentiles publishLatencyMs,
            Percentiles serviceLatencyMs,
            @Nullable Percentiles scheduleDelayMs,
            @Nullable Percentiles endToEndLatencyMs) {}

    /**
     * A plain binary COPY over one connection.
     *
     * @param events the stored events
     * @param durationMs the median duration of the trials in milliseconds
     * @param trialsMs the duration of each trial in milliseconds
     */
    public record CopyLimit(int events, double durationMs, List<Double> trialsMs) {

        /** Creates the result of at least one trial. */
        public static CopyLimit ofTrials(int events, List<Double> trialsMs) {
            return new CopyLimit(events, Statistics.median(trialsMs), trialsMs);
        }
    }

    /**
     * The result of a search.
     *
     * @param bestRate the highest rate that held, in events/s; 0 if none did
     * @param trials the trials in order
     */
    public record SearchResult(long bestRate, List<Trial> trials) {

        /**
         * A tested rate.
         *
         * @param rate the rate in events/s
         * @param latencyMs the limited latency in milliseconds
         * @param held whether the rate was reached with a latency below the limit and without failures
         */
        public record Trial(long rate, double latencyMs, boolean held) {}
    }

    /**
     * The behavior of a system under overload.
     *
     * @param overload the name of the overload phase
     * @param acceptedOfMaximum its publish rate divided by that of the reference phase
     * @param missedShare its missed events divided by the offered events
     * @param residentMb the memory by process at its start and end, each the mean of five seconds
     * @param recoverySeconds the seconds from its end until latencies are back at the level of the preceding phase for
     *     several consecutive seconds; {@code null} if not within the measured time
     */
    public record StressResult(
            String overload,
            double acceptedOfMaximum,
            double missedShare,
            Map<String, Resident> residentMb,
            @Nullable Integer recoverySeconds) {

        /** The memory at the start and at the end in 10^6 bytes; {@code null} if unknown. */
        public record Resident(
                @Nullable Double start, @Nullable Double end) {}
    }

    /**
     * All values of the measured phases in microseconds, as base64 of HdrHistogram's compressed encoding.
     *
     * @param publishLatencyMicros the time from the intended send to the acknowledgement
     * @param endToEndMicros the time from the intended send to the consumer
     */
    public record RawHistograms(String publishLatencyMicros, String endToEndMicros) {}
}
