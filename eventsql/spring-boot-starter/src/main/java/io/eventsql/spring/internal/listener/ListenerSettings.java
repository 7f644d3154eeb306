package io.eventsql.spring.internal.listener;

import io.eventsql.ConsumerSpec;
import io.eventsql.FailurePolicy;
import io.eventsql.InvalidInputException;
import io.eventsql.MissingEventPolicy;
import io.eventsql.OutOfRangePolicy;
import io.eventsql.ReadFrom;
import io.eventsql.RetryPolicy;
import io.eventsql.StartPosition;
import io.eventsql.spring.EventPayloadException;
import java.time.Duration;
import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.util.HashSet;
import java.util.Locale;
import java.util.Set;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;
import org.springframework.util.unit.DataSize;

/**
 * Settings of a listener by an annotation or by properties; {@code null} where they are not set. The names are those of
 * the attributes of {@link io.eventsql.spring.EventSqlListener}.
 *
 * @param concurrency Partitions handled at the same time.
 * @param keyConcurrency Events of one partition handled at the same time, each with another key.
 * @param maxPartitions Maximum number of partitions of one shard assigned to this process.
 * @param batchSize Maximum number of events of one partition in a page, and so in one call of a batch method.
 * @param pageBytes Maximum number of bytes of values, keys and headers of one partition fetched at once; a single event is
 *     always fetched.
 * @param commitInterval Longest time until the offset of a handled event is committed.
 * @param startPosition Where a new consumer starts: earliest, latest, a time such as 2026-01-31T12:00:00Z, or an offset.
 * @param failurePolicy What happens to an event when no attempt is left.
 * @param deadLetterStream Stream of the dead letters.
 * @param outOfRangePolicy Where the consumer continues when its offset no longer exists.
 * @param maxAttempts Maximum number of attempts to handle an event.
 * @param retryInitialDelay Delay before the second attempt; it doubles with each further attempt.
 * @param retryMaxDelay Maximum delay between two attempts.
 * @param retryable Only these exceptions are retried; empty: all.
 * @param fatal These exceptions are never retried.
 * @param handlerTimeout Longest duration of a call; a longer one loses its partition.
 * @param circuitBreaker Number of failures in a row after which a partition pauses; 0: never.
 * @param missingEventPolicy What happens where events are missing from the log.
 * @param readFrom Which server events are fetched from.
 * @param requireTypeHeader Whether the failure policy applies to an event without a stored type; otherwise it is read as the
 *     type that the method takes.
 * @param autoStartup Whether the listener starts with the application.
 */
public record ListenerSettings(
        @Nullable Integer concurrency,
        @Nullable Integer keyConcurrency,
        @Nullable Integer maxPartitions,
        @Nullable Integer batchSize,
        @Nullable DataSize pageBytes,
        @Nullable Duration commitInterval,
        @Nullable String startPosition,
        @Nullable FailurePolicy failurePolicy,
        @Nullable String deadLetterStream,
        @Nullable OutOfRangePolicy outOfRangePolicy,
        @Nullable Integer maxAttempts,
        @Nullable Duration retryInitialDelay,
        @Nullable Duration retryMaxDelay,
        @Nullable Set<Class<? extends Throwable>> retryable,
        @Nullable Set<Class<? extends Throwable>> fatal,
        @Nullable Duration handlerTimeout,
        @Nullable Integer circuitBreaker,
        @Nullable MissingEventPolicy missingEventPolicy,
        @Nullable ReadFrom readFrom,
        @Nullable Boolean requireTypeHeader,
        @Nullable Boolean autoStartup) {
    /** Sets nothing. */
    public static final ListenerSettings NONE = new ListenerSettings(
            null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
            null, null, null);

    /** Returns these settings, completed by the others. */
    ListenerSettings orElse(ListenerSettings others) {
        return new ListenerSettings(
                first(concurrency, others.concurrency),
                first(keyConcurrency, others.keyConcurrency),
                first(maxPartitions, others.maxPartitions),
                first(batchSize, others.batchSize),
                first(pageBytes, others.pageBytes),
                first(commitInterval, others.commitInterval),
                first(startPosition, others.startPosition),
                first(failurePolicy, others.failurePolicy),
                first(deadLetterStream, others.deadLetterStream),
                first(outOfRangePolicy, others.outOfRangePolicy),
                first(maxAttempts, others.maxAttempts),
                first(retryInitialDelay, others.retryInitialDelay),
                first(retryMaxDelay, others.retryMaxDelay),
                first(retryable, others.retryable),
                first(fatal, others.fatal),
                first(handlerTimeout, others.handlerTimeout),
                first(circuitBreaker, others.circuitBreaker),
                first(missingEventPolicy, others.missingEventPolicy),
                first(readFrom, others.readFrom),
                first(requireTypeHeader, others.requireTypeHeader),
                first(autoStartup, others.autoStartup));
    }

    private static <T> @Nullable T first(@Nullable T value, @Nullable T other) {
        return value != null ? value : other;
    }

    /**
     * Returns the consumer with these values; those that are not set stay.
     *
     * @throws InvalidInputException if a value is out of its range; names the field and the limit
     */
    ConsumerSpec applyTo(ConsumerSpec consumer) {
        ConsumerSpec spec = consumer.withRetry(applyTo(consumer.retry()));
        spec = with(spec, concurrency, ConsumerSpec::withConcurrency);
        spec = with(spec, keyConcurrency, ConsumerSpec::withKeyConcurrency);
        spec = with(spec, maxPartitions, ConsumerSpec::withMaxPartitions);
        spec = with(spec, batchSize, ConsumerSpec::withPageEvents);
        spec = with(spec, pageBytes, (s, size) -> s.withPageBytes(size.toBytes()));
        spec = with(spec, commitInterval, ConsumerSpec::withCommitInterval);
        spec = with(spec, startPosition, (s, text) -> s.withStartPosition(startPosition(text)));
        spec = with(spec, failurePolicy, ConsumerSpec::withFailurePolicy);
        spec = with(spec, deadLetterStream, ConsumerSpec::withDeadLetterStream);
        spec = with(spec, outOfRangePolicy, ConsumerSpec::withOutOfRangePolicy);
        spec = with(spec, circuitBreaker, ConsumerSpec::withCircuitBreaker);
        spec = with(spec, missingEventPolicy, ConsumerSpec::withMissingEventPolicy);
        spec = with(spec, readFrom, ConsumerSpec::withReadFrom);
        spec = with(spec, handlerTimeout, ConsumerSpec::withHandlerTimeout);
        return spec.withRetry(
                spec.retry().withFatal(withPayloadException(spec.retry().fatal())));
    }

    /** A payload that cannot be read cannot be read by the next attempt either. */
    private static Set<Class<? extends Throwable>> withPayloadException(Set<Class<? extends Throwable>> fatal) {
        Set<Class<? extends Throwable>> all = new HashSet<>(fatal);
        all.add(EventPayloadException.class);
        return all;
    }

    private RetryPolicy applyTo(RetryPolicy retry) {
        Duration min = retryInitialDelay != null ? retryInitialDelay : retry.initialDelay();
        // A delay that is set alone must not be rejected because of the other's default.
        Duration max = retryMaxDelay != null ? retryMaxDelay : longer(retry.maxDelay(), min);
        if (retryInitialDelay == null && max.compareTo(min) < 0) {
            min = max;
        }
        RetryPolicy changed = retry.withDelay(min, max);
        changed = with(changed, maxAttempts, RetryPolicy::withMaxAttempts);
        changed = with(changed, retryable, RetryPolicy::withRetryable);
        return with(changed, fatal, RetryPolicy::withFatal);
    }

    private static Duration longer(Duration one, Duration other) {
        return one.compareTo(other) >= 0 ? one : other;
    }

    private static <S, T> S with(S spec, @Nullable T value, BiFunction<S, T, S> change) {
        return value == null ? spec : change.apply(spec, value);
    }

    static StartPosition startPosition(String text) {
        String start = text.strip().toLowerCase(Locale.ROOT);
        return switch (start) {
            case "earliest" -> StartPosition.EARLIEST;
            case "latest" -> StartPosition.LATEST;
            default -> timeOrOffset(text.strip());
        };
    }

    private static StartPosition timeOrOffset(String text) {
        try {
            return text.matches("\\d+")
                    ? StartPosition.atOffset(Long.parseLong(text))
                    : StartPosition.at(Instant.parse(text));
        } catch (DateTimeParseException | NumberFormatException e) {
            InvalidInputException invalid = new InvalidInputException(
                    "consumer.startPosition",
                    "must be earliest, latest, a time such as 2026-01-31T12:00:00Z, or an offset, but is '" + text
                            + "'");
            invalid.initCause(e);
            throw invalid;
        }
    }
}
