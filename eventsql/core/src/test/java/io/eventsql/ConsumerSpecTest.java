package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.time.Duration;
import java.util.List;
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
        assertThat(SPEC)
                .isEqualTo(new ConsumerSpec(
                        "orders",
                        "mailer",
                        StartPosition.EARLIEST,
                        ConsumerSpec.DEFAULT_PAGE_EVENTS,
                        ConsumerSpec.DEFAULT_PAGE_BYTES,
                        ConsumerSpec.DEFAULT_COMMIT_INTERVAL,
                        ConsumerSpec.DEFAULT_CONCURRENCY,
                        ConsumerSpec.DEFAULT_RETRY_DELAY_MIN,
                        ConsumerSpec.DEFAULT_RETRY_DELAY_MAX));
    }

    @Test
    void with_eachValue_changesOnlyIt() {
        assertThat(SPEC.withStartPosition(StartPosition.LATEST)
                        .withPageEvents(7)
                        .withPageBytes(4_096)
                        .withCommitInterval(Duration.ofMillis(3))
                        .withConcurrency(5)
                        .withRetryDelay(Duration.ofMillis(1), Duration.ofMillis(2)))
                .isEqualTo(new ConsumerSpec(
                        "orders",
                        "mailer",
                        StartPosition.LATEST,
                        7,
                        4_096,
                        Duration.ofMillis(3),
                        5,
                        Duration.ofMillis(1),
                        Duration.ofMillis(2)));
    }

    /** A field with a value at one of its limits. */
    static List<ConsumerSpec> with_valueAtALimit_isAccepted() {
        return List.of(
                SPEC.withPageEvents(1),
                SPEC.withPageEvents(100_000),
                SPEC.withPageBytes(1_024),
                SPEC.withPageBytes(1L << 30),
                SPEC.withCommitInterval(Duration.ofMillis(1)),
                SPEC.withCommitInterval(Duration.ofMinutes(1)),
                SPEC.withConcurrency(1),
                SPEC.withConcurrency(10_000),
                SPEC.withRetryDelay(Duration.ofMillis(1), Duration.ofMillis(1)),
                SPEC.withRetryDelay(Duration.ofHours(1), Duration.ofHours(24)),
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
                new Wrong("consumer.concurrency", "between 1 and 10000", () -> SPEC.withConcurrency(0)),
                new Wrong("consumer.concurrency", "between 1 and 10000", () -> SPEC.withConcurrency(10_001)),
                new Wrong("consumer.commitInterval", "PT0.001S", () -> SPEC.withCommitInterval(Duration.ZERO)),
                new Wrong(
                        "consumer.commitInterval",
                        "PT1M",
                        () -> SPEC.withCommitInterval(Duration.ofMinutes(1).plus(NANO))),
                new Wrong("consumer.commitInterval", "PT1M", () -> SPEC.withCommitInterval(null)),
                new Wrong(
                        "consumer.retryDelayMin",
                        "PT0.001S",
                        () -> SPEC.withRetryDelay(Duration.ofMillis(1).minus(NANO), Duration.ofSeconds(1))),
                new Wrong(
                        "consumer.retryDelayMin",
                        "PT1H",
                        () -> SPEC.withRetryDelay(Duration.ofHours(1).plus(NANO), Duration.ofHours(2))),
                new Wrong("consumer.retryDelayMin", "PT1H", () -> SPEC.withRetryDelay(null, Duration.ofHours(2))),
                new Wrong(
                        "consumer.retryDelayMax",
                        "PT2S",
                        () -> SPEC.withRetryDelay(Duration.ofSeconds(2), Duration.ofSeconds(1))),
                new Wrong(
                        "consumer.retryDelayMax",
                        "PT24H",
                        () -> SPEC.withRetryDelay(
                                Duration.ofSeconds(1), Duration.ofHours(24).plus(NANO))),
                new Wrong("consumer.retryDelayMax", "PT24H", () -> SPEC.withRetryDelay(Duration.ofSeconds(1), null)),
                new Wrong("consumer.startPosition", "EARLIEST", () -> SPEC.withStartPosition(null)));
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
    @ValueSource(strings = {"", "Mailer", "a__b", "a_", "a b", "a';--", "\u0430", "1", "a\n"})
    void names_otherForms_areRefused(String name) {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> ConsumerSpec.of("orders", name))
                .withMessageStartingWith("consumer.name ")
                .withMessageContaining("at most 60 characters");
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> ConsumerSpec.of(name, "mailer"))
                .withMessageStartingWith("consumer.stream ")
                .withMessageContaining("at most 36 characters");
    }

    @Test
    void names_tooLong_areRefused() {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> ConsumerSpec.of("orders", "a".repeat(61)))
                .satisfies(e -> assertThat(e.field()).isEqualTo("consumer.name"));
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> ConsumerSpec.of("a".repeat(37), "mailer"))
                .satisfies(e -> assertThat(e.field()).isEqualTo("consumer.stream"));
    }
}
