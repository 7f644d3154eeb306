package io.eventsql.runner.limits;

/** Thrown after a stop signal. Measurements of the benchmark in progress are discarded. */
final class RunStoppedException extends RuntimeException {
    RunStoppedException() {
        super("stopped");
    }
}
