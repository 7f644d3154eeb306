package io.eventsql.runner.load;

/** Reported for a call that was neither acknowledged nor rejected in time. */
public final class UnansweredException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    UnansweredException(long timeoutNanos) {
        super("no answer within " + timeoutNanos / 1_000_000_000 + " s after the last call");
    }
}
