package io.eventsql.app.benchmark;

import io.eventsql.benchmark.event.BenchmarkEvent;
import java.util.List;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;

/** Counts the events of one run. Thread-safe. */
final class RunTracker {
    private final ConcurrentNavigableMap<Integer, RunnerTracker> runners = new ConcurrentSkipListMap<>();

    /** Returns the tracker of the event's runner and phase, creating it if necessary. */
    PhaseTracker getOrCreatePhase(BenchmarkEvent event) {
        return runners.computeIfAbsent(event.runner(), runner -> new RunnerTracker())
                .phase(event.warmup());
    }

    /**
     * Returns the runners' reports in the order of their numbers.
     *
     * @param detailed whether to include the detail
     */
    List<RunnerReport> report(boolean detailed) {
        return runners.entrySet().stream()
                .map(runner -> new RunnerReport(
                        runner.getKey(),
                        runner.getValue().measured().report(detailed),
                        runner.getValue().warmup().report(detailed)))
                .toList();
    }
}
