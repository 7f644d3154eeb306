package io.eventsql.runner.report;

import com.fasterxml.jackson.annotation.JsonIgnore;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonUnwrapped;
import io.eventsql.runner.consumption.ClockOffset;
import io.eventsql.runner.database.ShardServerInfo;
import io.eventsql.runner.workload.RunSettings;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What one runner leaves behind, as {@code runner-<number>.json}.
 *
 * @param settings what was asked
 * @param shards each shard's server
 * @param measured the measured events; in the file its fields stand at the top
 * @param warmup the events before them
 * @param ending how the run ended
 * @param javaVersion the version of the runner's Java
 * @param series second by second; {@code null} in files of before there was one
 * @param appClock how far the app's clock is ahead of the runner's; {@code null} where they have not met
 */
public record RunnerResult(
        RunSettings settings,
        List<ShardServerInfo> shards,
        @JsonUnwrapped PhaseResult measured,
        PhaseResult warmup,
        @JsonUnwrapped Ending ending,
        String javaVersion,
        @Nullable RunnerSeries series,
        @Nullable ClockOffset appClock) {

    /**
     * How a run ended.
     *
     * @param consumed whether the consumer handled everything in time
     * @param timedOut whether it did not
     * @param interrupted whether Ctrl-C or SIGTERM ended the run
     * @param stoppedForNoProgress whether it was given up because nothing was acknowledged any more
     */
    public record Ending(boolean consumed, boolean timedOut, boolean interrupted, boolean stoppedForNoProgress) {

        /** Whether everything was consumed, in time, and nothing cut the run short. */
        @JsonIgnore
        public boolean succeeded() {
            return consumed && !endedEarly();
        }

        /** Whether fewer events may have been sent than asked. */
        public boolean endedEarly() {
            return interrupted || stoppedForNoProgress;
        }
    }

    @JsonProperty("run")
    public String run() {
        return settings.identity().run();
    }

    @JsonProperty("runner")
    public int runner() {
        return settings.identity().runner();
    }

    /** Events it was to publish, without warm-up. */
    @JsonProperty("events_asked")
    public long eventsAsked() {
        return settings.load().events();
    }

    /** Events that were acknowledged in the warm-up. */
    @JsonProperty("warmup_events")
    public long warmupEvents() {
        return warmup.eventsPublished();
    }

    /** Failed events, the warm-up's included. */
    public long failedEvents() {
        return measured.publishErrors().count() + warmup.publishErrors().count();
    }
}
