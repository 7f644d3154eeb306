package io.eventsql;

import java.time.Duration;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * How often and when a failed event is handled again before the consumer's {@link FailurePolicy} applies. Immutable;
 * every {@code with} method returns a changed copy.
 *
 * @param maxAttempts how often an event is handled at most, 1 or more; {@link #UNLIMITED}: until it succeeds
 * @param delayMin the delay before the second attempt; doubles with each further one, 1 ms to 1 hour. The real delay is
 *     between half of it and all of it, by chance, so that many failed handlers do not return at the same moment.
 * @param delayMax the longest delay, {@code delayMin} to 24 hours
 * @param retryable only these exceptions and their subclasses are tried again; empty: all. Causes are not looked at.
 * @param fatal these exceptions and their subclasses are never tried again, even if they are {@code retryable}
 */
public record RetryPolicy(
        int maxAttempts,
        Duration delayMin,
        Duration delayMax,
        Set<Class<? extends Throwable>> retryable,
        Set<Class<? extends Throwable>> fatal) {
    /** No limit on the attempts. */
    public static final int UNLIMITED = Integer.MAX_VALUE;

    public static final int DEFAULT_MAX_ATTEMPTS = UNLIMITED;
    public static final Duration DEFAULT_DELAY_MIN = Duration.ofMillis(100);
    public static final Duration DEFAULT_DELAY_MAX = Duration.ofSeconds(30);

    /**
     * Checks every field.
     *
     * @throws InvalidInputException if a field is out of its range; names the field and the limit
     */
    public RetryPolicy {
        InvalidInputException.requireRange("retry.maxAttempts", maxAttempts, 1, UNLIMITED);
        Settings.requireDuration("retry.delayMin", delayMin, Duration.ofMillis(1), Duration.ofHours(1));
        Settings.requireDuration("retry.delayMax", delayMax, delayMin, Duration.ofHours(24));
        retryable = copy("retry.retryable", retryable);
        fatal = copy("retry.fatal", fatal);
    }

    /** Tries again without end. */
    public static RetryPolicy defaults() {
        return new RetryPolicy(DEFAULT_MAX_ATTEMPTS, DEFAULT_DELAY_MIN, DEFAULT_DELAY_MAX, Set.of(), Set.of());
    }

    public RetryPolicy withMaxAttempts(int value) {
        return new RetryPolicy(value, delayMin, delayMax, retryable, fatal);
    }

    public RetryPolicy withDelay(Duration min, Duration max) {
        return new RetryPolicy(maxAttempts, min, max, retryable, fatal);
    }

    public RetryPolicy withRetryable(Set<Class<? extends Throwable>> value) {
        return new RetryPolicy(maxAttempts, delayMin, delayMax, value, fatal);
    }

    public RetryPolicy withFatal(Set<Class<? extends Throwable>> value) {
        return new RetryPolicy(maxAttempts, delayMin, delayMax, retryable, value);
    }

    /** Whether an event that failed so often, now with this error, is handled again. */
    public boolean allowsAttemptAfter(int attempts, Throwable error) {
        return attempts < maxAttempts && (retryable.isEmpty() || isAny(retryable, error)) && !isAny(fatal, error);
    }

    private static boolean isAny(Set<Class<? extends Throwable>> types, Throwable error) {
        return types.stream().anyMatch(type -> type.isInstance(error));
    }

    private static Set<Class<? extends Throwable>> copy(String field, @Nullable Set<Class<? extends Throwable>> types) {
        if (types == null || types.stream().anyMatch(java.util.Objects::isNull)) {
            throw new InvalidInputException(field, "must be exception types, but is or holds null");
        }
        return Set.copyOf(types);
    }
}
