package io.eventsql.runner.spec;

/** A workload file that cannot be run; the message names the file, the field and the limit. */
public final class InvalidWorkloadException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    InvalidWorkloadException(String where, String problem) {
        super(where + ": " + problem);
    }
}
