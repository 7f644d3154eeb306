package io.eventsql.spring.internal.listener;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.eventsql.ConsumerSpec;
import io.eventsql.FailurePolicy;
import io.eventsql.InvalidInputException;
import io.eventsql.MissingEventPolicy;
import io.eventsql.OutOfRangePolicy;
import io.eventsql.ReadFrom;
import io.eventsql.StartPosition;
import io.eventsql.spring.EventPayloadException;
import io.eventsql.spring.EventSqlListener;
import io.eventsql.spring.InvalidListenerException;
import java.io.IOException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.MapConfigurationPropertySource;
import org.springframework.core.env.StandardEnvironment;

/** Settings by annotations and properties, and their precedence. */
class ListenerSettingsTest {
    private static final ConsumerSpec SPEC = ConsumerSpec.of("orders", "mailer");

    private final StandardEnvironment environment = new StandardEnvironment();

    static class Methods {
        @EventSqlListener(
                stream = "orders",
                consumer = "mailer",
                concurrency = "${permits:7}",
                keyConcurrency = "2",
                maxPartitions = "3",
                batchSize = "4",
                pageBytes = "1MB",
                commitInterval = "10ms",
                startPosition = "latest",
                failurePolicy = "park-key",
                deadLetterStream = "letters",
                outOfRangePolicy = "EARLIEST",
                maxAttempts = "5",
                retryInitialDelay = "6ms",
                retryMaxDelay = "7s",
                retryable = IOException.class,
                fatal = {IllegalStateException.class, IllegalArgumentException.class},
                handlerTimeout = "8m",
                circuitBreaker = "6",
                missingEventPolicy = "skip",
                readFrom = "replica",
                requireTypeHeader = "true",
                autoStartup = "false")
        void all() {}

        @EventSqlListener(stream = "orders", consumer = "mailer")
        void nothing() {}

        @EventSqlListener(stream = "orders", consumer = "mailer", maxAttempts = "many")
        void noNumber() {}

        @EventSqlListener(stream = "orders", consumer = "mailer", failurePolicy = "explode")
        void noPolicy() {}

        @EventSqlListener(stream = "orders", consumer = "mailer", maxAttempts = "${unset}")
        void noProperty() {}

        @EventSqlListener(stream = "", consumer = "mailer")
        void noStream() {}
    }

    private ListenerAttributes attributes(String name) {
        Method method = Arrays.stream(Methods.class.getDeclaredMethods())
                .filter(m -> m.getName().equals(name))
                .findFirst()
                .orElseThrow();
        return new ListenerAttributes(
                ListenerName.of("mailer", method),
                method.getAnnotation(EventSqlListener.class),
                environment::resolveRequiredPlaceholders);
    }

    /** Checks every setting, so that a new one must be added to {@link Methods#all}. */
    @Test
    void annotation_allAttributes_becomeTheConsumer() {
        ListenerSettings settings = attributes("all").settings();
        assertThat(Arrays.stream(ListenerSettings.class.getRecordComponents()).map(component -> {
                    try {
                        return component.getAccessor().invoke(settings);
                    } catch (ReflectiveOperationException e) {
                        throw new LinkageError(e.getMessage(), e);
                    }
                }))
                .doesNotContainNull();
        ConsumerSpec spec = settings.applyTo(SPEC);
        assertThat(spec)
                .isEqualTo(SPEC.withConcurrency(7)
                        .withKeyConcurrency(2)
                        .withMaxPartitions(3)
                        .withPageEvents(4)
                        .withPageBytes(1 << 20)
                        .withCommitInterval(Duration.ofMillis(10))
                        .withStartPosition(StartPosition.LATEST)
                        .withFailurePolicy(FailurePolicy.PARK_KEY)
                        .withCircuitBreaker(6)
                        .withMissingEventPolicy(MissingEventPolicy.SKIP)
                        .withReadFrom(ReadFrom.REPLICA)
                        .withDeadLetterStream("letters")
                        .withOutOfRangePolicy(OutOfRangePolicy.EARLIEST)
                        .withRetry(SPEC.retry()
                                .withMaxAttempts(5)
                                .withDelay(Duration.ofMillis(6), Duration.ofSeconds(7))
                                .withRetryable(Set.of(IOException.class))
                                .withFatal(Set.of(
                                        IllegalStateException.class,
                                        IllegalArgumentException.class,
                                        EventPayloadException.class)))
                        .withHandlerTimeout(Duration.ofMinutes(8)));
        assertThat(settings.requireTypeHeader()).isTrue();
        assertThat(settings.autoStartup()).isFalse();
    }

    @Test
    void annotation_withoutAttributes_hasDefaultsOfTheLibrary() {
        assertThat(attributes("nothing").settings()).isEqualTo(ListenerSettings.NONE);
        assertThat(ListenerSettings.NONE.applyTo(SPEC))
                .isEqualTo(SPEC.withRetry(SPEC.retry().withFatal(Set.of(EventPayloadException.class))));
        assertThat(attributes("nothing").id()).isEqualTo("orders-mailer");
    }

    @Test
    void properties_overrideTheAnnotation_whichOverridesDefaults() {
        Binder properties = new Binder(new MapConfigurationPropertySource(Map.of(
                "eventsql.listeners.orders-mailer.concurrency", "1",
                "eventsql.listeners.orders-mailer.page-bytes", "2MB",
                "eventsql.listeners.orders-mailer.fatal", "java.io.IOException",
                "eventsql.listener.concurrency", "2",
                "eventsql.listener.max-attempts", "3",
                "eventsql.listener.failure-policy", "dead-letter")));
        ListenerSettings settings = new ListenerSettingSources(
                        "orders-mailer",
                        properties
                                .bind("eventsql.listeners.orders-mailer", ListenerSettings.class)
                                .get(),
                        new ListenerSettings(
                                9, 9, null, null, null, null, null, null, null, null, null, null, null, null, null,
                                null, null, null, null, null, null),
                        properties
                                .bind("eventsql.listener", ListenerSettings.class)
                                .get())
                .merged();
        assertThat(settings.concurrency()).isEqualTo(1);
        assertThat(settings.keyConcurrency()).isEqualTo(9);
        assertThat(settings.maxAttempts()).isEqualTo(3);
        assertThat(settings.failurePolicy()).isEqualTo(FailurePolicy.DEAD_LETTER);
        assertThat(settings.fatal()).containsExactly(IOException.class);
        assertThat(settings.applyTo(SPEC).pageBytes()).isEqualTo(2 << 20);
    }

    @Test
    void delay_setAlone_movesTheOther() {
        ListenerSettings longMin = settings("retry-initial-delay", "1m");
        assertThat(longMin.applyTo(SPEC).retry().maxDelay()).isEqualTo(Duration.ofMinutes(1));
        ListenerSettings shortMax = settings("retry-max-delay", "1ms");
        assertThat(shortMax.applyTo(SPEC).retry().initialDelay()).isEqualTo(Duration.ofMillis(1));
    }

    private static ListenerSettings settings(String name, String value) {
        return new Binder(new MapConfigurationPropertySource(Map.of("x." + name, value)))
                .bind("x", ListenerSettings.class)
                .get();
    }

    @Test
    void startPosition_inEachForm_isRead() {
        assertThat(ListenerSettings.startPosition("Earliest")).isEqualTo(StartPosition.EARLIEST);
        assertThat(ListenerSettings.startPosition(" 17 ")).isEqualTo(StartPosition.atOffset(17));
        assertThat(ListenerSettings.startPosition("2026-01-31T12:00:00Z"))
                .isEqualTo(StartPosition.at(Instant.parse("2026-01-31T12:00:00Z")));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> ListenerSettings.startPosition("yesterday"))
                .withMessageContaining("earliest, latest, a time")
                .withMessageContaining("'yesterday'");
    }

    @Test
    void value_outOfRange_isRejected() {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> settings("concurrency", "0").applyTo(SPEC))
                .withMessageContaining("consumer.concurrency");
    }

    @Test
    void rejectedValue_isDescribedByItsSource() {
        InvalidInputException rejected = new InvalidInputException("consumer.pageEvents", "must be 1 or more");
        ListenerSettings byProperty = settings("batch-size", "0");
        ListenerSettings none = ListenerSettings.NONE;

        assertThat(new ListenerSettingSources("orders-mailer", byProperty, none, none).describe(rejected))
                .isEqualTo("eventsql.listeners.orders-mailer.batch-size must be 1 or more");
        assertThat(new ListenerSettingSources("orders-mailer", none, byProperty, none).describe(rejected))
                .isEqualTo("the attribute batchSize must be 1 or more");
        assertThat(new ListenerSettingSources("orders-mailer", none, none, byProperty).describe(rejected))
                .isEqualTo("eventsql.listener.batch-size must be 1 or more");
        assertThat(new ListenerSettingSources("x", settings("retry-max-delay", "0"), none, none)
                        .describe(new InvalidInputException("retry.maxDelay", "must be 1 ms or more")))
                .isEqualTo("eventsql.listeners.x.retry-max-delay must be 1 ms or more");
    }

    @ParameterizedTest
    @ValueSource(strings = {"noNumber", "noPolicy", "noProperty", "noStream"})
    void attribute_invalid_isRejectedWithItsName(String method) {
        String attribute = switch (method) {
            case "noPolicy" -> "failurePolicy";
            case "noStream" -> "stream";
            default -> "maxAttempts";
        };
        assertThatExceptionOfType(InvalidListenerException.class)
                .isThrownBy(() -> {
                    attributes(method).stream();
                    attributes(method).settings();
                })
                .withMessageContaining("bean 'mailer', Methods." + method)
                .withMessageContaining(attribute);
    }
}
