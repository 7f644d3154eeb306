package io.eventsql.spring.internal.listener;

import io.eventsql.FailurePolicy;
import io.eventsql.MissingEventPolicy;
import io.eventsql.OutOfRangePolicy;
import io.eventsql.ReadFrom;
import io.eventsql.spring.EventSqlListener;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.convert.ApplicationConversionService;
import org.springframework.core.convert.ConversionException;
import org.springframework.core.convert.ConversionService;
import org.springframework.util.unit.DataSize;

/** Reads the attributes of an {@link EventSqlListener}: resolves placeholders and converts texts like properties. */
final class ListenerAttributes {
    private static final ConversionService CONVERSIONS = ApplicationConversionService.getSharedInstance();

    private final ListenerName name;
    private final EventSqlListener annotation;
    private final Function<String, @Nullable String> placeholders;

    ListenerAttributes(
            ListenerName name, EventSqlListener annotation, Function<String, @Nullable String> placeholders) {
        this.name = name;
        this.annotation = annotation;
        this.placeholders = placeholders;
    }

    String stream() {
        return required("stream", annotation.stream());
    }

    String consumer() {
        return required("consumer", annotation.consumer());
    }

    String id() {
        String id = resolve("id", annotation.id());
        return id.isEmpty() ? stream() + "-" + consumer() : id;
    }

    List<String> transactionManagers() {
        return Arrays.stream(annotation.transactionManager())
                .map(manager -> resolve("transactionManager", manager))
                .filter(manager -> !manager.isEmpty())
                .toList();
    }

    ListenerSettings settings() {
        return new ListenerSettings(
                read("concurrency", annotation.concurrency(), Integer.class),
                read("keyConcurrency", annotation.keyConcurrency(), Integer.class),
                read("maxPartitions", annotation.maxPartitions(), Integer.class),
                read("batchSize", annotation.batchSize(), Integer.class),
                read("pageBytes", annotation.pageBytes(), DataSize.class),
                read("commitInterval", annotation.commitInterval(), Duration.class),
                read("startPosition", annotation.startPosition(), String.class),
                read("failurePolicy", annotation.failurePolicy(), FailurePolicy.class),
                read("deadLetterStream", annotation.deadLetterStream(), String.class),
                read("outOfRangePolicy", annotation.outOfRangePolicy(), OutOfRangePolicy.class),
                read("maxAttempts", annotation.maxAttempts(), Integer.class),
                read("retryInitialDelay", annotation.retryInitialDelay(), Duration.class),
                read("retryMaxDelay", annotation.retryMaxDelay(), Duration.class),
                types(annotation.retryable()),
                types(annotation.fatal()),
                read("handlerTimeout", annotation.handlerTimeout(), Duration.class),
                read("circuitBreaker", annotation.circuitBreaker(), Integer.class),
                read("missingEventPolicy", annotation.missingEventPolicy(), MissingEventPolicy.class),
                read("readFrom", annotation.readFrom(), ReadFrom.class),
                read("requireTypeHeader", annotation.requireTypeHeader(), Boolean.class),
                read("autoStartup", annotation.autoStartup(), Boolean.class));
    }

    private static @Nullable Set<Class<? extends Throwable>> types(Class<? extends Throwable>[] types) {
        return types.length == 0 ? null : Set.of(types);
    }

    private <T> @Nullable T read(String attribute, String text, Class<T> type) {
        String resolved = resolve(attribute, text);
        if (resolved.isEmpty()) {
            return null;
        }
        try {
            return CONVERSIONS.convert(resolved, type);
        } catch (ConversionException e) {
            throw name.invalid(
                    "has " + attribute + " = \"" + resolved + "\", which is not a valid " + type.getSimpleName(),
                    "Correct the attribute" + allowed(type) + ".",
                    e);
        }
    }

    private static String allowed(Class<?> type) {
        Object[] constants = type.getEnumConstants();
        return constants == null ? "" : ": one of " + Arrays.toString(constants);
    }

    private String required(String attribute, String text) {
        String resolved = resolve(attribute, text);
        if (resolved.isEmpty()) {
            throw name.invalid("has no " + attribute, "Set the attribute " + attribute + ".");
        }
        return resolved;
    }

    private String resolve(String attribute, String text) {
        try {
            @Nullable String resolved = placeholders.apply(text);
            return resolved == null ? "" : resolved.strip();
        } catch (IllegalArgumentException e) {
            throw name.invalid(
                    "has " + attribute + " = \"" + text + "\": " + e.getMessage(),
                    "Set the property, or give the placeholder a default.",
                    e);
        }
    }
}
