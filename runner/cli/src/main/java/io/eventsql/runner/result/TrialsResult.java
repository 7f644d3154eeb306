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
 * The result of a run of kind {@code blast} or {@code sweep}: {@code result.json}.
 *
 * @param format the format, as {@link RunResult#FORMAT}
 * @param identity the identity of the run
 * @param verdict the verdict
 * @param settings the specification of the run, with all defaults
 * @param driver the measured system
 * @param machine the machine of the runner
 * @param databases the databases of the environment; may be empty
 * @param trials the trials, each a {@link io.eventsql.runner.trials.BlastTrial} or {@link
 *     io.eventsql.runner.trials.SweepTrial}
 * @param resources the resource usage by second
 * @param copyLimit a plain COPY of the same events for comparison; {@code null} if not measured
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
}
