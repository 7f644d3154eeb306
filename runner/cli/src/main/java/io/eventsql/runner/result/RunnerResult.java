package io.eventsql.runner.result;

import com.fasterxml.jackson.annotation.JsonIgnore;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonUnwrapped;
import io.eventsql.runner.consumption.CompilationTime;
import io.eventsql.runner.consumption.StartBarrier;
import io.eventsql.runner.consumption.WarmupWatch;
import io.eventsql.runner.database.ShardServerInfo;
import io.eventsql.runner.measure.Histograms;
import io.eventsql.runner.measure.RunSeries;
import io.eventsql.runner.measure.TimeSeries;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.spec.RunSettings;
import java.util.ArrayList;
import java.util.List;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * The result of one runner, {@code runner-<number>.json}.
 *
 * @param settings the settings of the run
 * @param shards the servers of the shards
 * @param measured the measured phase; unwrapped to the top level
 * @param warmup the warm-up
 * @param ending the way the run ended
 * @param javaVersion the Java version of the runner
 * @param series the time series; {@code null} in older files
 * @param appClock the offset of the app's clock to the runner's; {@code null} if not measured
 * @param jvms the JVMs of the runner and the apps; {@code null} in older files
 */
public record RunnerResult(
        RunSettings settings,
        List<ShardServerInfo> shards,
        @JsonUnwrapped PhaseResult measured,
        PhaseResult warmup,
        @JsonUnwrapped Ending ending,
        String javaVersion,
        @Nullable Series series,
        StartBarrier.@Nullable ClockOffset appClock,
        @Nullable Jvms jvms) {

    /**
     * The way a run ended.
     *
     * @param consumed whether the consumer handled all events in time
     * @param timedOut whether the consumer timed out
     * @param interrupted whether Ctrl-C or SIGTERM aborted the run
     * @param stoppedForNoProgress whether the run was aborted for lack of acknowledgements
     */
    public record Ending(boolean consumed, boolean timedOut, boolean interrupted, boolean stoppedForNoProgress) {

        /** Returns whether all events were consumed in time and the run was not aborted. */
        @JsonIgnore
        public boolean succeeded() {
            return consumed && !endedEarly();
        }

        /** Returns whether the run was aborted, so that fewer events than requested may have been sent. */
        public boolean endedEarly() {
            return interrupted || stoppedForNoProgress;
        }
    }

    /**
     * The time series of one runner.
     *
     * @param seconds the table, without consumer columns
     * @param publishMicrosHistograms the encoded publish latencies of each second; {@code null} if there are none
     * @param resources the resource usage during the run
     */
    public record Series(TimeSeries seconds, List<@Nullable String> publishMicrosHistograms, ResourceSeries resources) {

        /** Creates the series from a finished recording. */
        public static Series of(RunSeries series, TimeSeries seconds, ResourceSeries resources) {
            List<@Nullable String> histograms = new ArrayList<>();
            for (int t : seconds.t()) {
                Histogram micros = series.publishMicros(t);
                histograms.add(micros == null ? null : Histograms.encode(micros));
            }
            return new Series(seconds, histograms, resources);
        }
    }

    /**
     * The JVMs of a runner and of the apps.
     *
     * @param warmup how the warm-up ended; {@code null} if there was none
     * @param measuredCompilation the compilation time during the measured phase; {@code null} if unknown
     * @param runnerOptions the JVM options of the runner
     * @param appOptions the JVM options of the first app; empty if unknown
     */
    public record Jvms(
            WarmupWatch.@Nullable Outcome warmup,
            @Nullable CompilationTime measuredCompilation,
            List<String> runnerOptions,
            List<String> appOptions) {}

    @JsonProperty("run")
    public String run() {
        return settings.identity().run();
    }

    @JsonProperty("runner")
    public int runner() {
        return settings.identity().runner();
    }

    /** Returns the requested events, excluding the warm-up. */
    @JsonProperty("events_asked")
    public long eventsAsked() {
        return settings.load().events();
    }

    /** Returns the events acknowledged in the warm-up. */
    @JsonProperty("warmup_events")
    public long warmupEvents() {
        return warmup.eventsPublished();
    }

    /** Returns the failed events, including the warm-up. */
    public long failedEvents() {
        return measured.publishErrors().count() + warmup.publishErrors().count();
    }
}
