package io.eventsql.runner.result;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonUnwrapped;
import io.eventsql.runner.database.DatabaseInfo;
import io.eventsql.runner.measure.Statistics;
import io.eventsql.runner.sample.ResourceSeries;
import io.eventsql.runner.spec.RunSpec;
import java.util.List;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/**
 * What became of a run of the kinds {@code blast} and {@code sweep}: {@code result.json}.
 *
 * @param format as {@link RunResult#FORMAT}
 * @param identity which run it is
 * @param verdict whether it was good
 * @param settings what was asked, with all defaults
 * @param driver what was measured
 * @param machine what the runner ran on
 * @param databases of the environment; empty where there are none
 * @param trials a {@link io.eventsql.runner.trials.BlastTrial} or {@link io.eventsql.runner.trials.SweepTrial} each
 * @param resources what was used meanwhile, second by second
 * @param copyLimit what the same takes without everything that makes it safe; {@code null} where it was not measured
 */
public record TrialsResult(
        int format,
        @JsonUnwrapped RunResult.Identity identity,
        @JsonUnwrapped RunResult.Verdict verdict,
        RunSpec settings,
        RunResult.DriverInfo driver,
        RunResult.Machine machine,
        List<DatabaseInfo> databases,
        JsonNode trials,
        ResourceSeries resources,
        @JsonInclude(JsonInclude.Include.NON_NULL) @Nullable CopyLimit copyLimit) {

    /**
     * A plain binary COPY over one connection.
     *
     * @param events how many it stored
     * @param durationMs how long it took, milliseconds: the median of the trials
     * @param trialsMs how long each trial took, milliseconds
     */
    public record CopyLimit(int events, double durationMs, List<Double> trialsMs) {

        /** Of at least one trial. */
        public static CopyLimit ofTrials(int events, List<Double> trialsMs) {
            return new CopyLimit(events, Statistics.median(trialsMs), trialsMs);
        }
    }
}
