package io.eventsql.internal.thread;

import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Pattern;

/**
 * Consecutive failures of a task that is retried: the pause after each, which grows, and whether it should be logged. Each
 * reason is logged once in a series, however long that lasts. Used by one thread.
 */
public final class FailureSeries {
    private static final long RETRY_MIN_MS = 20;
    private static final long RETRY_MAX_MS = 1_000;
    private static final int DOUBLINGS_MAX = 10;
    private static final int REASONS_MAX = 10;
    /** Differs between two messages of the same reason: durations, identifiers, connection counts. */
    private static final Pattern NUMBERS = Pattern.compile("[0-9]+");

    private final Set<String> reasons = new HashSet<>();
    private int failures;

    /**
     * A failure.
     *
     * @param number how many there have been in the series, with this one
     * @param retryMs the pause before the next attempt
     * @param isNew whether no earlier failure of the series had the same reason
     */
    public record Failure(int number, long retryMs, boolean isNew) {}

    /** Adds a failure. */
    public Failure add(String reason) {
        long backoff = Math.min(RETRY_MIN_MS << Math.min(failures++, DOUBLINGS_MAX), RETRY_MAX_MS);
        long retryMs = backoff / 2 + ThreadLocalRandom.current().nextLong(backoff / 2 + 1);
        boolean isNew = reasons.size() < REASONS_MAX
                && reasons.add(NUMBERS.matcher(reason).replaceAll("0"));
        return new Failure(failures, retryMs, isNew);
    }

    /** Ends the series with a success; returns the number of failures that it had. */
    public int end() {
        int ended = failures;
        if (ended > 0) {
            failures = 0;
            reasons.clear();
        }
        return ended;
    }
}
