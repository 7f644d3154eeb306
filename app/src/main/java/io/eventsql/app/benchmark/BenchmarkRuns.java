package io.eventsql.app.benchmark;

import io.eventsql.benchmark.event.BenchmarkEvent;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What arrived of the newest {@value #RUNS_MAX} benchmark runs. Thread-safe. */
final class BenchmarkRuns {
    static final int RUNS_MAX = 50;

    private final BoundedMap<String, RunTracker> runs = new BoundedMap<>(RUNS_MAX);

    /** Records a batch that was handled at that time. */
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
     * The reports of the run's runners, or {@code null} if nothing of it was seen.
     *
     * @param detailed whether with the numbers themselves
     */
    @Nullable
    List<RunnerReport> report(String run, boolean detailed) {
        RunTracker tracker = runs.get(run);
        return tracker == null ? null : tracker.report(detailed);
    }

    /** What arrives of the run from now on is counted from 0. */
    void forget(String run) {
        runs.removeIf(run::equals);
    }
}
