package io.eventsql;

import java.time.Duration;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * When and how often a failed event is retried before the consumer's {@link FailurePolicy} applies. Immutable; every
 * {@code with} method returns a changed copy.
 *
 * @param maxAttempts the maximum number of handler calls for an event, 1 or more; {@link #UNLIMITED}: until it succeeds;
 *     {@code null}: unlimited with {@link FailurePolicy#STOP}, {@value #DEFAULT_MAX_ATTEMPTS} with the other policies
 * @param initialDelay the delay before the second attempt, 1 ms to 1 hour; it doubles with each further attempt. The
 *     actual delay is a random value between half of it and all of it, so that many failed handlers do not retry at the
 *     same time.
 * @param maxDelay the upper bound of the delay, {@code initialDelay} to 24 hours
 * @param retryable exception types to retry, subclasses included; empty: all. An exception matches if it or one of its
 *     causes is of such a type.
 * @param fatal exception types never to retry, subclasses included; takes precedence over {@code retryable}. An exception
 *     matches if it or one of its causes is of such a type.
 */
public record RetryPolicy(
        @Nullable Integer maxAttempts,
        Duration initialDelay,
        Duration maxDelay,
        Set<Class<? extends Throwable>> retryable,
        Set<Class<? extends Throwable>> fatal) {
    /** No limit on the attempts. */
    public static final int UNLIMITED = Integer.MAX_VALUE;

    /** The default of {@link #maxAttempts()} with a failure policy other than {@link FailurePolicy#STOP}. */
    public static final int DEFAULT_MAX_ATTEMPTS = 10;

    public static final Duration DEFAULT_INITIAL_DELAY = Duration.ofMillis(100);
    public static final Duration DEFAULT_MAX_DELAY = Duration.ofSeconds(10);

    /**
     * Validates the policy.
     *
     * @throws InvalidInputException if a field is out of range; names the field and the limit
     */
    public RetryPolicy {
        if (maxAttempts != null) {
            InvalidInputException.requireRange("retry.maxAttempts", maxAttempts, 1, UNLIMITED);
        }
        Settings.requireDuration("retry.initialDelay", initialDelay, Duration.ofMillis(1), Duration.ofHours(1));
        Settings.requireDuration("retry.maxDelay", maxDelay, initialDelay, Duration.ofHours(24));
        retryable = copy("retry.retryable", retryable);
        fatal = copy("retry.fatal", fatal);
    }

    /** Returns the default policy: attempts as the failure policy suggests, delays of 100 ms to 10 s. */
    public static RetryPolicy defaults() {
        return new RetryPolicy(null, DEFAULT_INITIAL_DELAY, DEFAULT_MAX_DELAY, Set.of(), Set.of());
    }

    /** Returns a copy with another {@link #maxAttempts()}. */
    public RetryPolicy withMaxAttempts(int value) {
        return new RetryPolicy(value, initialDelay, maxDelay, retryable, fatal);
    }

    /** Returns a copy with another {@link #initialDelay()} and {@link #maxDelay()}. */
    public RetryPolicy withDelay(Duration initial, Duration max) {
        return new RetryPolicy(maxAttempts, initial, max, retryable, fatal);
    }

    /** Returns a copy with other {@link #retryable()} types. */
    public RetryPolicy withRetryable(Set<Class<? extends Throwable>> value) {
        return new RetryPolicy(maxAttempts, initialDelay, maxDelay, value, fatal);
    }

    /** Returns a copy with other {@link #fatal()} types. */
    public RetryPolicy withFatal(Set<Class<? extends Throwable>> value) {
        return new RetryPolicy(maxAttempts, initialDelay, maxDelay, retryable, value);
    }

    /** Returns a copy whose {@link #maxAttempts()} is that of the failure policy, unless it is set. */
    public RetryPolicy forPolicy(FailurePolicy failurePolicy) {
        if (maxAttempts != null) {
            return this;
        }
        return withMaxAttempts(failurePolicy == FailurePolicy.STOP ? UNLIMITED : DEFAULT_MAX_ATTEMPTS);
    }

    /**
     * Returns whether an event is retried. Without {@link #maxAttempts()} the number of attempts does not matter.
     *
     * @param attempts the number of failed attempts so far
     * @param error the exception of the last one; its causes are examined, too
     */
    public boolean allowsAttemptAfter(int attempts, Throwable error) {
        boolean isWithinLimit = maxAttempts == null || attempts < maxAttempts;
        return isWithinLimit && (retryable.isEmpty() || matches(retryable, error)) && !matches(fatal, error);
    }

    private static boolean matches(Set<Class<? extends Throwable>> types, Throwable error) {
        if (types.isEmpty()) {
            return false;
        }
        // A cause may refer back to an exception that it caused.
        Set<Throwable> examined = Collections.newSetFromMap(new IdentityHashMap<>());
        for (@Nullable Throwable cause = error; cause != null && examined.add(cause); cause = cause.getCause()) {
            for (Class<? extends Throwable> type : types) {
                if (type.isInstance(cause)) {
                    return true;
                }
            }
        }
        return false;
    }

    private static Set<Class<? extends Throwable>> copy(String field, @Nullable Set<Class<? extends Throwable>> types) {
        if (types == null || types.stream().anyMatch(java.util.Objects::isNull)) {
            throw new InvalidInputException(field, "must be exception types, but is null or contains null");
        }
        return Set.copyOf(types);
    }
}
