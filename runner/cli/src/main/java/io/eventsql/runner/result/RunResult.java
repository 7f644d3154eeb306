package io.eventsql.runner.result;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonUnwrapped;
import io.eventsql.runner.database.DatabaseInfo;
import io.eventsql.runner.measure.ErrorCount;
import io.eventsql.runner.measure.Percentiles;
import io.eventsql.runner.phases.ConsumerCounts;
import io.eventsql.runner.phases.ReplayerCounts;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.series.TimeSeries;
import io.eventsql.runner.spec.RunSpec;
import io.eventsql.runner.spec.WorkloadKind;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What became of one run of a workload: {@code result.json}. Some groups only order the fields; in the file these stand
 * at the top.
 *
 * @param format 2
 * @param identity which run it is
 * @param verdict whether it was good
 * @param settings what was asked, with all defaults
 * @param driver what was measured
 * @param machine what the runner ran on
 * @param databases of the environment; empty where there are none
 * @param phases in order
 * @param consumers of each stream
 * @param replayers of each stream
 * @param search of the kind {@code search}
 * @param stress where a phase was a multiple above 1 of one before it
 * @param series second by second
 * @param resources second by second
 * @param histograms all values of the measured phases
 */
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
        @JsonInclude(JsonInclude.Include.NON_NULL) @Nullable SearchResult search,
        @JsonInclude(JsonInclude.Include.NON_NULL) @Nullable StressResult stress,
        TimeSeries series,
        ResourceSeries resources,
        RawHistograms histograms) {
    public static final int FORMAT = 2;

    /**
     * Which run it is.
     *
     * @param workload the name of the workload
     * @param run the name of the run
     * @param runId the id its events carry
     * @param kind what it did
     * @param description of the workload
     * @param command how to measure it again
     * @param gitCommit what was measured
     * @param startedAt in UTC
     * @param finishedAt in UTC
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
     * Whether the run was good.
     *
     * @param passed nothing lost, duplicated, out of order, failed or late, and not cut short
     * @param interrupted ended by Ctrl-C or SIGTERM: everything else is what it came to until then
     * @param problems what was wrong, for people
     */
    public record Verdict(boolean passed, boolean interrupted, List<String> problems) {}

    /**
     * What was measured, and what it promises.
     *
     * @param name the driver
     * @param version the server's
     * @param durability see {@link io.eventsql.runner.driver.Guarantees}
     * @param order likewise
     * @param delivery likewise
     */
    public record DriverInfo(String name, String version, String durability, String order, String delivery) {}

    /**
     * What the runner ran on.
     *
     * @param cpus its processors
     * @param memoryMb 10^6 bytes; 0 where it is not known
     * @param os name, version and architecture
     * @param javaVersion of the runner
     */
    public record Machine(int cpus, long memoryMb, String os, String javaVersion) {}

    /**
     * A phase. Rates are events/s, over the time from its first intended send to the last acknowledgement or delivery.
     *
     * @param name as in the workload
     * @param measured {@code false}: a warm-up
     * @param startedAtMicros epoch microseconds
     * @param seconds how long it was
     * @param offeredRate what was asked of an open loop, or what callers sent
     * @param eventsSent events of calls that were made
     * @param eventsPublished events that were acknowledged
     * @param eventsFailed events that were not
     * @param eventsMissed events whose slot was left out
     * @param errors the failures by class
     * @param publishRate acknowledged
     * @param publishMbPerSecond the same in 10^6 bytes of values
     * @param consumeRate delivered, to all consumers together
     * @param publishLatencyMs from the intended send to the acknowledgement
     * @param serviceLatencyMs from the call itself to the acknowledgement
     * @param scheduleDelayMs from the intended send to the call; {@code null} with callers, who have no schedule
     * @param endToEndLatencyMs from the intended send to the consumer; {@code null} without consumers
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
     * What a search found.
     *
     * @param bestRate the highest rate that held, events/s; 0: none did
     * @param trials in order
     */
    public record SearchResult(long bestRate, List<Trial> trials) {

        /**
         * A rate that was tried.
         *
         * @param rate events/s
         * @param latencyMs what the limit is for
         * @param held whether it stayed below the limit and nothing failed or was left unconsumed
         */
        public record Trial(long rate, double latencyMs, boolean held) {}
    }

    /**
     * How a system stood more load than it can take.
     *
     * @param overload the phase with the multiple
     * @param acceptedOfMaximum its publish rate divided by that of the phase the multiple refers to
     * @param missedShare its missed events divided by those offered
     * @param residentMb by process, at its start and end: the means of five seconds each
     * @param recoverySeconds from its end until several seconds in a row are as quick as the phase right before it;
     *     {@code null}: not within what was measured
     */
    public record StressResult(
            String overload,
            double acceptedOfMaximum,
            double missedShare,
            Map<String, Resident> residentMb,
            @Nullable Integer recoverySeconds) {

        /** Memory at the start and at the end, 10^6 bytes; {@code null} where it was not seen. */
        public record Resident(
                @Nullable Double start, @Nullable Double end) {}
    }

    /**
     * All values of the measured phases in microseconds, as base64 of HdrHistogram's compressed encoding.
     *
     * @param publishLatencyMicros from the intended send to the acknowledgement
     * @param endToEndMicros from the intended send to the consumer
     */
    public record RawHistograms(String publishLatencyMicros, String endToEndMicros) {}
}
