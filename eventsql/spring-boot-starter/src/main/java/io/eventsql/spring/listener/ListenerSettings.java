package io.eventsql.spring.listener;

import io.eventsql.ConsumerSpec;
import io.eventsql.FailurePolicy;
import io.eventsql.OutOfRangePolicy;
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
 * What properties and annotations say about a listener; {@code null} where they say nothing. The names are those of
 * {@link ConsumerSpec} and {@link RetryPolicy}.
 *
 * @param concurrency partitions handled at the same time
 * @param keyConcurrency events of one partition handled at the same time, each of another key
 * @param maxPartitions the most partitions of one shard held by this process
 * @param pageEvents the most events of one partition fetched at once and given to a batch method
 * @param pageBytes the most bytes of values of one partition fetched at once
 * @param commitInterval how long handled events wait at most until their offset is committed
 * @param start where a new consumer begins: earliest, latest, a time such as 2026-01-31T12:00:00Z, or an offset
 * @param failurePolicy what becomes of an event that may not be tried again
 * @param deadLetterStream the stream that dead letters go to
 * @param outOfRangePolicy where it goes on when retention has overtaken it
 * @param attempts how often an event is handled at most
 * @param retryDelayMin the delay before the second attempt; doubles with each further one
 * @param retryDelayMax the longest delay
 * @param retryable only these exceptions are tried again; empty: all
 * @param fatal these exceptions are never tried again
 * @param handlerTimeout a handler that runs longer loses its partition
 * @param autoStartup whether it starts with the application
 */
public record ListenerSettings(
        @Nullable Integer concurrency,
        @Nullable Integer keyConcurrency,
        @Nullable Integer maxPartitions,
        @Nullable Integer pageEvents,
        @Nullable DataSize pageBytes,
        @Nullable Duration commitInterval,
        @Nullable String start,
        @Nullable FailurePolicy failurePolicy,
        @Nullable String deadLetterStream,
        @Nullable OutOfRangePolicy outOfRangePolicy,
        @Nullable Integer attempts,
        @Nullable Duration retryDelayMin,
        @Nullable Duration retryDelayMax,
        @Nullable Set<Class<? extends Throwable>> retryable,
        @Nullable Set<Class<? extends Throwable>> fatal,
        @Nullable Duration handlerTimeout,
        @Nullable Boolean autoStartup) {
    /** Says nothing. */
    public static final ListenerSettings NONE = new ListenerSettings(
            null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null);

    /** These, and the others where these say nothing. */
    ListenerSettings orElse(ListenerSettings others) {
        return new ListenerSettings(
                first(concurrency, others.concurrency),
                first(keyConcurrency, others.keyConcurrency),
                first(maxPartitions, others.maxPartitions),
                first(pageEvents, others.pageEvents),
                first(pageBytes, others.pageBytes),
                first(commitInterval, others.commitInterval),
                first(start, others.start),
                first(failurePolicy, others.failurePolicy),
                first(deadLetterStream, others.deadLetterStream),
                first(outOfRangePolicy, others.outOfRangePolicy),
                first(attempts, others.attempts),
                first(retryDelayMin, others.retryDelayMin),
                first(retryDelayMax, others.retryDelayMax),
                first(retryable, others.retryable),
                first(fatal, others.fatal),
                first(handlerTimeout, others.handlerTimeout),
                first(autoStartup, others.autoStartup));
    }

    private static <T> @Nullable T first(@Nullable T value, @Nullable T other) {
        return value != null ? value : other;
    }

    /**
     * The consumer with these values, and the library's where these say nothing.
     *
     * @throws io.eventsql.InvalidInputException if a value is out of its range; names the field and the limit
     */
    ConsumerSpec applyTo(ConsumerSpec consumer) {
        ConsumerSpec spec = consumer.withRetry(applyTo(consumer.retry()));
        spec = with(spec, concurrency, ConsumerSpec::withConcurrency);
        spec = with(spec, keyConcurrency, ConsumerSpec::withKeyConcurrency);
        spec = with(spec, maxPartitions, ConsumerSpec::withMaxPartitions);
        spec = with(spec, pageEvents, ConsumerSpec::withPageEvents);
        spec = with(spec, pageBytes, (s, size) -> s.withPageBytes(size.toBytes()));
        spec = with(spec, commitInterval, ConsumerSpec::withCommitInterval);
        spec = with(spec, start, (s, text) -> s.withStartPosition(startPosition(text)));
        spec = with(spec, failurePolicy, ConsumerSpec::withFailurePolicy);
        spec = with(spec, deadLetterStream, ConsumerSpec::withDeadLetterStream);
        spec = with(spec, outOfRangePolicy, ConsumerSpec::withOutOfRangePolicy);
        spec = with(spec, handlerTimeout, ConsumerSpec::withHandlerTimeout);
        return spec.withRetry(spec.retry().withFatal(withUnfit(spec.retry().fatal())));
    }

    /** An event that does not fit does not fit the next time either. */
    private static Set<Class<? extends Throwable>> withUnfit(Set<Class<? extends Throwable>> fatal) {
        Set<Class<? extends Throwable>> all = new HashSet<>(fatal);
        all.add(EventPayloadException.class);
        return all;
    }

    private RetryPolicy applyTo(RetryPolicy retry) {
        Duration min = retryDelayMin != null ? retryDelayMin : retry.initialDelay();
        // One that is set alone must not fail because of the other's default.
        Duration max = retryDelayMax != null ? retryDelayMax : longer(retry.maxDelay(), min);
        if (retryDelayMin == null && max.compareTo(min) < 0) {
            min = max;
        }
        RetryPolicy changed = retry.withDelay(min, max);
        changed = with(changed, attempts, RetryPolicy::withMaxAttempts);
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
            throw new IllegalArgumentException(
                    "start must be earliest, latest, a time such as 2026-01-31T12:00:00Z, or an offset, but is '" + text
                            + "'",
                    e);
        }
    }
}
