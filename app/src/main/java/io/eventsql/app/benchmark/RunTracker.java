package io.eventsql.app.benchmark;

import io.eventsql.benchmark.event.BenchmarkEvent;
import java.util.List;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;

/** What arrived of one run. Thread-safe. */
final class RunTracker {
    private final ConcurrentNavigableMap<Integer, RunnerTracker> runners = new ConcurrentSkipListMap<>();

    /** Where the event belongs. */
    PhaseTracker getOrCreatePhase(BenchmarkEvent event) {
        return runners.computeIfAbsent(event.runner(), runner -> new RunnerTracker())
                .phase(event.warmup());
    }

    /**
     * The runners' reports, by their numbers.
     *
     * @param detailed whether with the numbers themselves
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
