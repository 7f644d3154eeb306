package io.eventsql.runner.limits;

/** The run was told to end early; what the part has measured until now is dropped. */
final class RunStoppedException extends RuntimeException {
    RunStoppedException() {
        super("stopped");
    }
}
