package io.eventsql.app.benchmark;

import io.eventsql.benchmark.event.BenchmarkEvent;
import java.util.List;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;

/** What arrived of one run. Thread-safe. */
final class RunTracker {
    private final ConcurrentNavigableMap<Integer, RunnerTracker> runners = new ConcurrentSkipListMap<>();

    /** Where the event belongs. */
    PhaseTracker phase(BenchmarkEvent event) {
        return runners.computeIfAbsent(event.runner(), runner -> new RunnerTracker())
                .phase(event.warmup());
    }

    /** The runners' reports, by their numbers. */
    List<RunnerReport> report() {
        return runners.entrySet().stream()
                .map(runner -> new RunnerReport(
                        runner.getKey(),
                        runner.getValue().measured().report(),
                        runner.getValue().warmup().report()))
                .toList();
    }
}
