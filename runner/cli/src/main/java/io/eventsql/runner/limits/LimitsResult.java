package io.eventsql.runner.limits;

import com.fasterxml.jackson.annotation.JsonUnwrapped;
import io.eventsql.runner.report.Summary;

/**
 * What a limits run came to: {@code result.json}. Parts that were not measured are not in it.
 *
 * @param run the run's id
 * @param interrupted whether Ctrl-C or SIGTERM ended it
 * @param machine what it ran on; in the file its fields stand at the top
 * @param settings what was asked
 * @param measured what was measured; in the file its fields stand at the top
 */
public record LimitsResult(
        String run,
        boolean interrupted,
        @JsonUnwrapped Summary.Machine machine,
        LimitsSettings settings,
        @JsonUnwrapped LimitsRun.Measurements measurements) {

    /** Whether everything asked was measured, and no event failed, was lost, duplicated or out of order. */
    public boolean passed() {
        SnapshotResult snapshot = measurements.snapshot();
        HandlersResult handlers = measurements.handlers();
        OutboxResult outbox = measurements.outbox();
        return !interrupted
                && (snapshot == null || snapshot.failedEvents() == 0)
                && (handlers == null || handlers.passed())
                && (outbox == null || outbox.passed());
    }
}
