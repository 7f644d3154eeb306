package io.eventsql.spring;

import io.eventsql.InvalidInputException;
import io.eventsql.StoredEvent;
import java.lang.reflect.Modifier;
import java.lang.reflect.Type;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.springframework.core.ResolvableType;
import org.springframework.util.ClassUtils;

/**
 * The types of an application's payloads, by the names that are stored with their events. {@link EventSqlTemplate} stores
 * the name of each payload's class; a listener's event is read as the registered class of that name. A name is only looked
 * up here and never loaded as a class. Thread-safe.
 *
 * <p>Registered are the types of listeners' payloads, classes with {@link EventType} in the application's packages, those of
 * the property {@code eventsql.event-types}, and every class that was published. The permitted classes of a sealed type are
 * registered with it. {@code String}, {@code byte[]} and types of the JDK, of Jackson and of CloudEvents have no name, nor has {@link Tombstone}.
 */
public final class EventTypes {
    /** The header with the name of the payload's type. */
    public static final String TYPE_HEADER = "eventsql-type";

    /** The header with the version of the payload's type; absent for version 1. */
    public static final String VERSION_HEADER = "eventsql-type-version";

    private static final String CLOUD_EVENT_TYPE = CloudEventHeaders.PREFIX + "type";
    private static final Set<String> FOREIGN_PACKAGES = Set.of(
            "java.", "javax.", "jakarta.", "jdk.", "kotlin.", "tools.jackson.", "com.fasterxml.", "io.cloudevents.");

    private final Map<String, Class<?>> byName = new ConcurrentHashMap<>();
    private final Map<Class<?>, String> names = new ConcurrentHashMap<>();
    private final String cloudEventTypePrefix;
    private final Map<String, String> cloudEventTypes;

    /**
     * Registers types.
     *
     * @throws InvalidInputException if two have the same name
     */
    public EventTypes(Class<?>... types) {
        this("", Map.of());
        register(types);
    }

    /**
     * Returns an instance whose types are also found by their attribute {@code ce_type} of CloudEvents.
     *
     * @param typePrefix prefix of {@code ce_type}, followed by the type's name
     * @param types {@code ce_type} by the full name of the payload's class, instead of prefix and name
     */
    public static EventTypes ofCloudEvents(String typePrefix, Map<String, String> types) {
        return new EventTypes(typePrefix, types);
    }

    private EventTypes(String cloudEventTypePrefix, Map<String, String> cloudEventTypes) {
        this.cloudEventTypePrefix = cloudEventTypePrefix;
        this.cloudEventTypes = Map.copyOf(cloudEventTypes);
    }

    /**
     * Registers classes of payloads, and of sealed types the permitted ones. Registering a class again has no effect.
     *
     * @throws InvalidInputException if a class has the name of another registered one, or is abstract and not sealed
     */
    public void register(Class<?>... types) {
        for (Class<?> type : types) {
            if (!isNamed(type) || isOpen(type)) {
                throw new InvalidInputException(
                        "eventType", "must be a class of payloads or a sealed type, but is " + type.getTypeName());
            }
            registerTree(type);
        }
    }

    private void registerTree(Class<?> type) {
        if (type.isSealed()) {
            for (Class<?> permitted : type.getPermittedSubclasses()) {
                registerTree(permitted);
            }
        }
        if (!Modifier.isAbstract(type.getModifiers())) {
            registerOne(type);
        }
    }

    private synchronized String registerOne(Class<?> type) {
        @Nullable String known = names.get(type);
        if (known != null) {
            return known;
        }
        String name = declaredName(type);
        Set<String> all = new TreeSet<>(List.of(name, cloudEventTypePrefix + name, cloudEventType(type, name)));
        @Nullable EventType annotation = type.getAnnotation(EventType.class);
        if (annotation != null) {
            requireVersion(type, annotation.version());
            all.addAll(List.of(annotation.formerNames()));
        }
        for (String one : all) {
            requireFree(one, type);
        }
        all.forEach(one -> byName.put(one, type));
        names.put(type, name);
        return name;
    }

    private static String declaredName(Class<?> type) {
        @Nullable EventType annotation = type.getAnnotation(EventType.class);
        return annotation == null || annotation.value().isBlank()
                ? type.getSimpleName()
                : annotation.value().strip();
    }

    private static void requireVersion(Class<?> type, int version) {
        if (version < 1) {
            throw new InvalidInputException(
                    "eventType.version", "must be 1 or more, but is " + version + " at " + type.getName());
        }
    }

    private void requireFree(String name, Class<?> type) {
        @Nullable Class<?> other = byName.get(name);
        if (other != null && other != type) {
            throw new InvalidInputException(
                    "eventType",
                    "must be unique, but '" + name + "' is the name of " + other.getName() + " and of " + type.getName()
                            + ": give one of them another name with @EventType");
        }
    }

    /** Returns the registered class of a name; {@code null} if there is none. */
    public @Nullable Class<?> find(String name) {
        return byName.get(name);
    }

    /**
     * Returns the name that is stored with events of a class, and registers the class; {@code null} if its events are
     * stored without one.
     *
     * @throws InvalidInputException if it has the name of another registered class
     */
    public @Nullable String name(Class<?> payload) {
        @Nullable String known = names.get(payload);
        if (known != null) {
            return known;
        }
        @Nullable Class<?> named = namedClass(payload);
        return named == null ? null : registerOne(named);
    }

    /** Returns the class itself, for a proxy or an anonymous class the class it extends; {@code null} if it has no name. */
    private static @Nullable Class<?> namedClass(Class<?> payload) {
        Class<?> type = ClassUtils.getUserClass(payload);
        while (type.isAnonymousClass()) {
            type = type.getSuperclass();
        }
        return isNamed(type) && !type.isHidden() && !type.isSynthetic() && !Modifier.isAbstract(type.getModifiers())
                ? type
                : null;
    }

    /** Returns the version of a class, {@link EventType#version()}. */
    static int version(Class<?> type) {
        @Nullable EventType annotation = type.getAnnotation(EventType.class);
        return annotation == null ? 1 : annotation.version();
    }

    /** Returns the attribute {@code ce_type} of CloudEvents with payloads of a class. */
    String cloudEventType(Class<?> payload) {
        @Nullable String name = name(payload);
        return cloudEventType(payload, name == null ? payload.getSimpleName() : name);
    }

    private String cloudEventType(Class<?> payload, String name) {
        return cloudEventTypes.getOrDefault(payload.getName(), cloudEventTypePrefix + name);
    }

    /** Returns the name that is stored with an event, as {@link #TYPE_HEADER} or {@code ce_type}; {@code null} without. */
    public static @Nullable String storedName(StoredEvent event) {
        return storedName(event.headers());
    }

    static @Nullable String storedName(Map<String, String> headers) {
        @Nullable String name = headers.get(TYPE_HEADER);
        return name == null ? headers.get(CLOUD_EVENT_TYPE) : name;
    }

    /** Returns whether a type distinguishes events: not {@code String}, {@code byte[]}, {@code Map}, JSON trees … */
    public static boolean isNamed(Class<?> type) {
        return type != Tombstone.class
                && !type.isPrimitive()
                && !type.isArray()
                && FOREIGN_PACKAGES.stream().noneMatch(type.getName()::startsWith);
    }

    /** Returns whether classes that are not known here may extend or implement the type, so that it cannot be registered. */
    public static boolean isOpen(Class<?> type) {
        return Modifier.isAbstract(type.getModifiers()) && !type.isSealed();
    }

    /**
     * Returns the type as which to deserialize an event.
     *
     * @param requested the type that the caller takes
     * @param requireHeader whether an event without a stored type is refused; otherwise it is read as requested
     * @return {@code requested}, or the registered class of the event if {@code requested} is a supertype of it
     * @throws EventSerializationException if the event has another type
     */
    public Type resolve(StoredEvent event, Type requested, boolean requireHeader) {
        Class<?> raw = ResolvableType.forType(requested).toClass();
        if (!isNamed(raw) && raw != Object.class && raw != Record.class) {
            return requested;
        }
        @Nullable String name = storedName(event);
        if (name == null) {
            if (requireHeader && raw != Object.class) {
                throw new EventSerializationException(
                        "The event at " + event.position() + " has no type, which require-type-header demands: it lacks"
                                + " the header " + TYPE_HEADER + ", and " + raw.getName() + " is expected");
            }
            return requested;
        }
        @Nullable Class<?> known = find(name);
        if (known == null) {
            if (raw == Object.class || (isOpen(raw) && names.keySet().stream().noneMatch(raw::isAssignableFrom))) {
                return requested; // the serializer knows its classes
            }
            throw new EventSerializationException("The event at " + event.position() + " has the unknown type '" + name
                    + "', but " + raw.getName() + " is expected");
        }
        if (!raw.isAssignableFrom(known)) {
            throw new EventSerializationException("The event at " + event.position() + " has the type '" + name + "' ("
                    + known.getName() + "), but " + raw.getName() + " is expected");
        }
        return known == raw ? requested : known;
    }
}
