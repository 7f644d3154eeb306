package io.eventsql.runner.limits;

/** The run was told to end early; what the part has measured until now is dropped. */
final class StoppedException extends RuntimeException {
    StoppedException() {
        super("stopped");
    }
}
