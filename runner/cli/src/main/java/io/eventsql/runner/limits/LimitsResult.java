package io.eventsql.runner.limits;

import com.fasterxml.jackson.annotation.JsonUnwrapped;
import io.eventsql.runner.report.Summary;

/**
 * The result of a limits run: {@code result.json}. Benchmarks that did not run are omitted.
 *
 * @param run the run's id
 * @param interrupted whether Ctrl-C or SIGTERM aborted the run
 * @param machine the environment of the run; unwrapped to the top level
 * @param settings the settings of the run
 * @param measurements the measurements; unwrapped to the top level
 */
public record LimitsResult(
        String run,
        boolean interrupted,
        @JsonUnwrapped Summary.Machine machine,
        LimitsSettings settings,
        @JsonUnwrapped LimitsRun.Measurements measurements) {

    /** Returns whether the run completed and no event failed, was lost, duplicated or out of order. */
    public boolean passed() {
        SnapshotResult snapshot = measurements.snapshot();
        HandlersResult handlers = measurements.handlers();
        OutboxResult outbox = measurements.outbox();
        RetentionResult retention = measurements.retention();
        CompactionResult compaction = measurements.compaction();
        ScheduledResult scheduled = measurements.scheduled();
        return !interrupted
                && (snapshot == null || snapshot.failedEvents() == 0)
                && (handlers == null || handlers.passed())
                && (outbox == null || outbox.passed())
                && (retention == null || retention.passed())
                && (compaction == null || compaction.passed())
                && (scheduled == null || scheduled.passed());
    }
}
