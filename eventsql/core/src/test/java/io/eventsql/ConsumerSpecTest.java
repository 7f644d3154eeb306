package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.time.Duration;
import java.util.List;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

class ConsumerSpecTest {
    private static final ConsumerSpec SPEC = ConsumerSpec.of("orders", "mailer");
    private static final Duration NANO = Duration.ofNanos(1);

    @Test
    void of_names_hasTheDefaults() {
        assertThat(SPEC.stream()).isEqualTo("orders");
        assertThat(SPEC.name()).isEqualTo("mailer");
        assertThat(SPEC.startPosition()).isEqualTo(StartPosition.EARLIEST);
        assertThat(SPEC.pageEvents()).isEqualTo(1_000);
        assertThat(SPEC.pageBytes()).isEqualTo(4L << 20);
        assertThat(SPEC.commitInterval()).isEqualTo(Duration.ofMillis(50));
        assertThat(SPEC.concurrency()).isEqualTo(64);
        assertThat(SPEC.keyConcurrency()).isEqualTo(1);
        assertThat(SPEC.maxPartitions()).isEqualTo(Integer.MAX_VALUE);
        assertThat(SPEC.handlerTimeout()).isEqualTo(Duration.ofMinutes(5));
        assertThat(SPEC.retry()).isEqualTo(RetryPolicy.defaults());
        assertThat(SPEC.failurePolicy()).isEqualTo(FailurePolicy.STOP);
        assertThat(SPEC.circuitBreaker()).isEqualTo(20);
        assertThat(SPEC.deadLetterStream()).isEqualTo("orders_dead_letter");
        assertThat(SPEC.outOfRangePolicy()).isEqualTo(OutOfRangePolicy.FAIL);
        assertThat(SPEC.missingEventPolicy()).isEqualTo(MissingEventPolicy.STOP);
        assertThat(SPEC.maxFetchedBytes()).isEqualTo(64L << 20);
        assertThat(SPEC.maxEventsAhead()).isEqualTo(20_000);
    }

    /** A change and what shows it. */
    private record Change(
            String name, UnaryOperator<ConsumerSpec> with, Function<ConsumerSpec, Object> get, Object to) {
        @Override
        public String toString() {
            return name;
        }
    }

    private static List<Change> changes() {
        RetryPolicy retry = RetryPolicy.defaults().withMaxAttempts(3);
        return List.of(
                new Change(
                        "startPosition",
                        s -> s.withStartPosition(StartPosition.atOffset(7)),
                        ConsumerSpec::startPosition,
                        StartPosition.atOffset(7)),
                new Change("pageEvents", s -> s.withPageEvents(7), ConsumerSpec::pageEvents, 7),
                new Change("pageBytes", s -> s.withPageBytes(4_096), ConsumerSpec::pageBytes, 4_096L),
                new Change(
                        "maxFetchedBytes",
                        s -> s.withMaxFetchedBytes(1 << 20),
                        ConsumerSpec::maxFetchedBytes,
                        1L << 20),
                new Change("maxEventsAhead", s -> s.withMaxEventsAhead(9), ConsumerSpec::maxEventsAhead, 9),
                new Change(
                        "missingEventPolicy",
                        s -> s.withMissingEventPolicy(MissingEventPolicy.SKIP),
                        ConsumerSpec::missingEventPolicy,
                        MissingEventPolicy.SKIP),
                new Change(
                        "commitInterval",
                        s -> s.withCommitInterval(Duration.ofMillis(3)),
                        ConsumerSpec::commitInterval,
                        Duration.ofMillis(3)),
                new Change("concurrency", s -> s.withConcurrency(5), ConsumerSpec::concurrency, 5),
                new Change("keyConcurrency", s -> s.withKeyConcurrency(50), ConsumerSpec::keyConcurrency, 50),
                new Change("maxPartitions", s -> s.withMaxPartitions(2), ConsumerSpec::maxPartitions, 2),
                new Change(
                        "handlerTimeout",
                        s -> s.withHandlerTimeout(Duration.ofSeconds(1)),
                        ConsumerSpec::handlerTimeout,
                        Duration.ofSeconds(1)),
                new Change("retry", s -> s.withRetry(retry), ConsumerSpec::retry, retry),
                new Change(
                        "failurePolicy",
                        s -> s.withFailurePolicy(FailurePolicy.PARK_KEY),
                        ConsumerSpec::failurePolicy,
                        FailurePolicy.PARK_KEY),
                new Change("circuitBreaker", s -> s.withCircuitBreaker(7), ConsumerSpec::circuitBreaker, 7),
                new Change("deadLetterStream", s -> s.withDeadLetterStream("d"), ConsumerSpec::deadLetterStream, "d"),
                new Change(
                        "outOfRangePolicy",
                        s -> s.withOutOfRangePolicy(OutOfRangePolicy.EARLIEST),
                        ConsumerSpec::outOfRangePolicy,
                        OutOfRangePolicy.EARLIEST));
    }

    @Test
    void with_eachValue_changesOnlyIt() {
        for (Change change : changes()) {
            ConsumerSpec changed = change.with().apply(SPEC);
            assertThat(changed).isNotEqualTo(SPEC).isEqualTo(change.with().apply(SPEC));
            for (Change other : changes()) {
                assertThat(other.get().apply(changed))
                        .as("%s after a change of %s", other, change)
                        .isEqualTo(
                                other == change || other.name().equals(change.name())
                                        ? other.to()
                                        : other.get().apply(SPEC));
            }
        }
    }

    @Test
    void withRetryDelay_delays_changesOnlyThem() {
        assertThat(SPEC.withRetryDelay(Duration.ofMillis(1), Duration.ofMillis(2))
                        .retry())
                .isEqualTo(RetryPolicy.defaults().withDelay(Duration.ofMillis(1), Duration.ofMillis(2)));
    }

    /** A field with a value at one of its limits. */
    static List<ConsumerSpec> with_valueAtALimit_isAccepted() {
        return List.of(
                SPEC.withPageEvents(1),
                SPEC.withPageEvents(100_000),
                SPEC.withPageBytes(1_024),
                SPEC.withPageBytes(1L << 30),
                SPEC.withMaxFetchedBytes(64L << 10),
                SPEC.withMaxFetchedBytes(64L << 30),
                SPEC.withMaxEventsAhead(1),
                SPEC.withMaxEventsAhead(10_000_000),
                SPEC.withCommitInterval(Duration.ofMillis(1)),
                SPEC.withCommitInterval(Duration.ofMinutes(1)),
                SPEC.withConcurrency(1),
                SPEC.withConcurrency(10_000),
                SPEC.withRetryDelay(Duration.ofMillis(1), Duration.ofMillis(1)),
                SPEC.withRetryDelay(Duration.ofHours(1), Duration.ofHours(24)),
                SPEC.withKeyConcurrency(10_000),
                SPEC.withMaxPartitions(1),
                SPEC.withCircuitBreaker(0),
                SPEC.withCircuitBreaker(1_000_000),
                SPEC.withHandlerTimeout(Duration.ofMillis(10)),
                SPEC.withHandlerTimeout(Duration.ofDays(1)),
                ConsumerSpec.of("orders", "a".repeat(60)));
    }

    @ParameterizedTest
    @MethodSource
    void with_valueAtALimit_isAccepted(ConsumerSpec spec) {
        assertThat(spec).isNotNull();
    }

    private record Wrong(String field, String limit, Runnable with) {
        @Override
        public String toString() {
            return field + " not " + limit;
        }
    }

    static Stream<Wrong> with_valueBeyondALimit_isRefused() {
        return Stream.of(
                new Wrong("consumer.pageEvents", "between 1 and 100000", () -> SPEC.withPageEvents(0)),
                new Wrong("consumer.pageEvents", "between 1 and 100000", () -> SPEC.withPageEvents(100_001)),
                new Wrong("consumer.pageEvents", "between 1 and 100000", () -> SPEC.withPageEvents(Integer.MIN_VALUE)),
                new Wrong("consumer.pageBytes", "between 1024 and 1073741824", () -> SPEC.withPageBytes(1_023)),
                new Wrong(
                        "consumer.pageBytes", "between 1024 and 1073741824", () -> SPEC.withPageBytes((1L << 30) + 1)),
                new Wrong("consumer.pageBytes", "between 1024 and 1073741824", () -> SPEC.withPageBytes(-1)),
                new Wrong("consumer.maxFetchedBytes", "between 65536 and", () -> SPEC.withMaxFetchedBytes(65_535)),
                new Wrong("consumer.maxEventsAhead", "between 1 and 10000000", () -> SPEC.withMaxEventsAhead(0)),
                new Wrong(
                        "consumer.maxEventsAhead", "between 1 and 10000000", () -> SPEC.withMaxEventsAhead(10_000_001)),
                new Wrong("consumer.missingEventPolicy", "null", () -> SPEC.withMissingEventPolicy(null)),
                new Wrong("consumer.concurrency", "between 1 and 10000", () -> SPEC.withConcurrency(0)),
                new Wrong("consumer.concurrency", "between 1 and 10000", () -> SPEC.withConcurrency(10_001)),
                new Wrong("consumer.commitInterval", "PT0.001S", () -> SPEC.withCommitInterval(Duration.ZERO)),
                new Wrong(
                        "consumer.commitInterval",
                        "PT1M",
                        () -> SPEC.withCommitInterval(Duration.ofMinutes(1).plus(NANO))),
                new Wrong("consumer.commitInterval", "PT1M", () -> SPEC.withCommitInterval(null)),
                new Wrong(
                        "retry.initialDelay",
                        "PT0.001S",
                        () -> SPEC.withRetryDelay(Duration.ofMillis(1).minus(NANO), Duration.ofSeconds(1))),
                new Wrong(
                        "retry.initialDelay",
                        "PT1H",
                        () -> SPEC.withRetryDelay(Duration.ofHours(1).plus(NANO), Duration.ofHours(2))),
                new Wrong("retry.initialDelay", "PT1H", () -> SPEC.withRetryDelay(null, Duration.ofHours(2))),
                new Wrong(
                        "retry.maxDelay",
                        "PT2S",
                        () -> SPEC.withRetryDelay(Duration.ofSeconds(2), Duration.ofSeconds(1))),
                new Wrong(
                        "retry.maxDelay",
                        "PT24H",
                        () -> SPEC.withRetryDelay(
                                Duration.ofSeconds(1), Duration.ofHours(24).plus(NANO))),
                new Wrong("retry.maxDelay", "PT24H", () -> SPEC.withRetryDelay(Duration.ofSeconds(1), null)),
                new Wrong(
                        "retry.maxAttempts",
                        "between 1 and",
                        () -> SPEC.withRetry(RetryPolicy.defaults().withMaxAttempts(0))),
                new Wrong("retry.fatal", "null", () -> RetryPolicy.defaults().withFatal(null)),
                new Wrong(
                        "retry.retryable", "null", () -> RetryPolicy.defaults().withRetryable(null)),
                new Wrong("consumer.keyConcurrency", "between 1 and 10000", () -> SPEC.withKeyConcurrency(0)),
                new Wrong("consumer.keyConcurrency", "between 1 and 10000", () -> SPEC.withKeyConcurrency(10_001)),
                new Wrong("consumer.maxPartitions", "between 1 and", () -> SPEC.withMaxPartitions(0)),
                new Wrong("consumer.handlerTimeout", "PT0.01S", () -> SPEC.withHandlerTimeout(Duration.ofMillis(9))),
                new Wrong("consumer.handlerTimeout", "PT24H", () -> SPEC.withHandlerTimeout(Duration.ofDays(2))),
                new Wrong(
                        "consumer.deadLetterStream", "at most 100 characters", () -> SPEC.withDeadLetterStream("a b")),
                new Wrong("consumer.circuitBreaker", "-1", () -> SPEC.withCircuitBreaker(-1)),
                new Wrong("consumer.retry", "null", () -> SPEC.withRetry(null)),
                new Wrong("consumer.failurePolicy", "null", () -> SPEC.withFailurePolicy(null)),
                new Wrong("consumer.outOfRangePolicy", "null", () -> SPEC.withOutOfRangePolicy(null)),
                new Wrong("startPosition.offset", "between 0 and", () -> StartPosition.atOffset(-1)),
                new Wrong("startPosition.time", "null", () -> StartPosition.at(null)),
                new Wrong("consumer.startPosition", "null", () -> SPEC.withStartPosition(null)));
    }

    @ParameterizedTest
    @MethodSource
    void with_valueBeyondALimit_isRefused(Wrong wrong) {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(wrong.with()::run)
                .withMessageStartingWith(wrong.field() + " ")
                .withMessageContaining(wrong.limit())
                .satisfies(e -> assertThat(e.field()).isEqualTo(wrong.field()));
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(strings = {"", "_a", "a b", "a';--", "\u0430", "a\n"})
    void names_otherForms_areRefused(String name) {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> ConsumerSpec.of("orders", name))
                .withMessageStartingWith("consumer.name ")
                .withMessageContaining("at most 60 characters");
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> ConsumerSpec.of(name, "mailer"))
                .withMessageStartingWith("consumer.stream ")
                .withMessageContaining("at most 100 characters");
    }

    @Test
    void names_tooLong_areRefused() {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> ConsumerSpec.of("orders", "a".repeat(61)))
                .satisfies(e -> assertThat(e.field()).isEqualTo("consumer.name"));
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> ConsumerSpec.of("a".repeat(101), "mailer"))
                .satisfies(e -> assertThat(e.field()).isEqualTo("consumer.stream"));
    }
}
