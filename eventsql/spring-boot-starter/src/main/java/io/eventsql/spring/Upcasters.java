package io.eventsql.spring;

import io.eventsql.InvalidInputException;
import io.eventsql.StoredEvent;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/** The steps from the stored version of a payload to the current one of its class. Immutable. */
final class Upcasters {
    private final Map<Class<?>, Map<Integer, EventUpcaster>> byType = new HashMap<>();

    /** @throws InvalidInputException if two convert the same version, or one converts a version that its type never had */
    Upcasters(Collection<? extends EventUpcaster> upcasters) {
        upcasters.forEach(this::add);
    }

    private void add(EventUpcaster upcaster) {
        Class<?> type = upcaster.type();
        int from = upcaster.fromVersion();
        int current = EventTypes.version(type);
        if (from < 1 || from >= current) {
            throw new InvalidInputException(
                    "eventUpcaster.fromVersion",
                    "must be between 1 and the version before the current one, but "
                            + upcaster.getClass().getName()
                            + " converts version " + from + " and " + type.getName() + " has version " + current
                            + " (@EventType)");
        }
        @Nullable
        EventUpcaster other = byType.computeIfAbsent(type, t -> new HashMap<>()).put(from, upcaster);
        if (other != null) {
            throw new InvalidInputException(
                    "eventUpcaster.fromVersion",
                    "must be unique, but " + other.getClass().getName() + " and "
                            + upcaster.getClass().getName() + " both convert version " + from + " of "
                            + type.getName());
        }
    }

    /**
     * Returns the version in which an event was stored; events without {@link EventTypes#VERSION_HEADER} have version 1.
     *
     * @throws EventSerializationException if this application does not know the version
     */
    static int storedVersion(StoredEvent event, Class<?> type) {
        @Nullable String header = event.headers().get(EventTypes.VERSION_HEADER);
        int current = EventTypes.version(type);
        if (header == null) {
            return 1;
        }
        if (!header.matches("[1-9]\\d{0,8}") || Integer.parseInt(header) > current) {
            throw new EventSerializationException("The event at " + event.position() + " has version " + header
                    + " of its type, but this application knows versions up to " + current + " of " + type.getName()
                    + ": deploy consumers before publishers");
        }
        return Integer.parseInt(header);
    }

    /**
     * Returns the payload in the current version.
     *
     * @throws EventSerializationException if a step is missing or fails
     */
    JsonNode upcast(StoredEvent event, Class<?> type, JsonNode payload, int storedVersion) {
        JsonNode upcast = payload;
        Map<Integer, EventUpcaster> steps = byType.getOrDefault(type, Map.of());
        for (int version = storedVersion; version < EventTypes.version(type); version++) {
            @Nullable EventUpcaster step = steps.get(version);
            if (step == null) {
                throw new EventSerializationException(
                        "The event at " + event.position() + " has version " + storedVersion + " of " + type.getName()
                                + ", and no EventUpcaster converts version " + version);
            }
            try {
                upcast = step.upcast(upcast);
            } catch (RuntimeException e) {
                throw new EventSerializationException(
                        "The event at " + event.position() + " cannot be converted from version " + version + " of "
                                + type.getName() + " by " + step.getClass().getName() + ": " + e.getMessage(),
                        e);
            }
        }
        return upcast;
    }
}
