package io.eventsql.spring.internal.listener;

import io.eventsql.InvalidInputException;
import io.eventsql.spring.internal.PropertyNames;
import java.lang.reflect.RecordComponent;
import java.util.Arrays;
import java.util.Map;

/**
 * Where the settings of a listener come from, in descending precedence.
 *
 * @param id the listener's id
 * @param byId the properties of this listener
 * @param annotation the attributes of its annotation
 * @param defaults the properties of all listeners
 */
record ListenerSettingSources(
        String id, ListenerSettings byId, ListenerSettings annotation, ListenerSettings defaults) {
    /** Attributes whose names differ from those of the library's fields. */
    private static final Map<String, String> ATTRIBUTES = Map.ofEntries(
            Map.entry("consumer.name", "consumer"),
            Map.entry("consumer.pageEvents", "batchSize"),
            Map.entry("retry.initialDelay", "retryInitialDelay"),
            Map.entry("retry.maxDelay", "retryMaxDelay"),
            Map.entry("startPosition.time", "startPosition"),
            Map.entry("startPosition.offset", "startPosition"));

    /** Returns the settings that apply. */
    ListenerSettings merged() {
        return byId.orElse(annotation).orElse(defaults);
    }

    /** Returns the exception's message with the property or attribute that sets the rejected value. */
    String describe(InvalidInputException exception) {
        String field = exception.field();
        String attribute = ATTRIBUTES.getOrDefault(field, field.substring(field.indexOf('.') + 1));
        return source(attribute) + " " + PropertyNames.inText(PropertyNames.problem(exception));
    }

    private String source(String attribute) {
        if (sets(byId, attribute)) {
            return "eventsql.listeners." + id + "." + PropertyNames.kebab(attribute);
        }
        if (!sets(annotation, attribute) && sets(defaults, attribute)) {
            return "eventsql.listener." + PropertyNames.kebab(attribute);
        }
        return "the attribute " + attribute;
    }

    private static boolean sets(ListenerSettings settings, String attribute) {
        return Arrays.stream(ListenerSettings.class.getRecordComponents())
                .filter(component -> component.getName().equals(attribute))
                .anyMatch(component -> isSet(settings, component));
    }

    private static boolean isSet(ListenerSettings settings, RecordComponent component) {
        try {
            return component.getAccessor().invoke(settings) != null;
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("Record component " + component + " is not accessible", e);
        }
    }
}
