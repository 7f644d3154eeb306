package io.eventsql.app.benchmark;

/** Counts the events of one runner in one run. Thread-safe. */
record RunnerTracker(PhaseTracker measured, PhaseTracker warmup) {

    RunnerTracker() {
        this(new PhaseTracker(), new PhaseTracker());
    }

    PhaseTracker phase(boolean isWarmup) {
        return isWarmup ? warmup : measured;
    }
}
