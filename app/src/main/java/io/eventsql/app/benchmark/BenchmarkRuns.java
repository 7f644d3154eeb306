package io.eventsql.app.benchmark;

import io.eventsql.benchmark.event.BenchmarkEvent;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Counts the newest {@value #RUNS_MAX} benchmark runs. Thread-safe. */
final class BenchmarkRuns {
    static final int RUNS_MAX = 50;

    private final BoundedMap<String, RunTracker> runs = new BoundedMap<>(RUNS_MAX);

    /** Records a batch handled at the given time. */
    void record(DecodedBatch batch, long handledAtMicros) {
        int from = 0;
        while (from < batch.size()) {
            int to = batch.endOfPhase(from);
            getOrCreatePhase(batch.event(from)).record(batch, from, to, handledAtMicros);
            from = to;
        }
    }

    private PhaseTracker getOrCreatePhase(BenchmarkEvent event) {
        return runs.getOrCreate(event.run(), RunTracker::new).getOrCreatePhase(event);
    }

    /**
     * Returns the reports of the run's runners, or {@code null} if no event was received.
     *
     * @param detailed whether to include the detail
     */
    @Nullable
    List<RunnerReport> report(String run, boolean detailed) {
        RunTracker tracker = runs.get(run);
        return tracker == null ? null : tracker.report(detailed);
    }

    /** Resets the counts of a run. */
    void forget(String run) {
        runs.removeIf(run::equals);
    }
}
