package io.eventsql.runner.spec;

/** Thrown for an invalid workload file. The message names the file, the field and the limit. */
public final class InvalidWorkloadException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    InvalidWorkloadException(String where, String problem) {
        super(where + ": " + problem);
    }
}
