package io.eventsql.spring.internal.listener;

import io.eventsql.StoredEvent;
import io.eventsql.spring.EventSerializationException;
import io.eventsql.spring.EventTypes;
import java.sql.Connection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The methods of a class-level listener: each event is handled by the one that takes its type. Thread-safe.
 *
 * @param listener the listener, for messages
 * @param byType the methods by the types of their payloads
 * @param tombstones handles events without a value
 * @param others handles events that no other method takes
 * @param requiresType whether an event without a stored type is refused
 */
record TypedHandlers(
        ListenerName listener,
        EventTypes types,
        Map<Class<?>, ListenerHandler> byType,
        @Nullable ListenerHandler tombstones,
        @Nullable ListenerHandler others,
        boolean requiresType)
        implements ListenerHandler {

    @Override
    public void handle(List<StoredEvent> events, @Nullable Connection connection) throws Exception {
        StoredEvent event = events.getFirst();
        ListenerHandler handler;
        try {
            handler = handlerOf(event);
        } catch (EventSerializationException e) {
            throw ListenerArguments.argumentFailure(event, e);
        }
        handler.handle(events, connection);
    }

    private ListenerHandler handlerOf(StoredEvent event) {
        @Nullable String name = EventTypes.storedName(event);
        if (event.isTombstone()) {
            return handlerOfTombstone(event, name);
        }
        if (name == null) {
            if (requiresType) {
                throw refused(event, "has no type, which require-type-header demands");
            }
            // Stored before types were: it can only be meant for the one type that the listener takes.
            return byType.size() == 1 ? byType.values().iterator().next() : othersOr(event, "has no type");
        }
        @Nullable Class<?> type = types.find(name);
        if (type == null) {
            return othersOr(event, "has the unknown type '" + name + "'");
        }
        @Nullable ListenerHandler exact = byType.get(type);
        return exact != null
                ? exact
                : ofSupertype(type).orElseGet(() -> othersOr(event, "has the type '" + name + "'"));
    }

    /** A method of its stored type, or the only one, takes it only if it does not require a value. */
    private ListenerHandler handlerOfTombstone(StoredEvent event, @Nullable String name) {
        if (tombstones != null) {
            return tombstones;
        }
        @Nullable Class<?> type = name == null ? null : types.find(name);
        @Nullable ListenerHandler ofType = type == null ? null : byType.get(type);
        if (ofType != null) {
            return ofType;
        }
        if (type != null) {
            return ofSupertype(type).orElseGet(() -> othersOr(event, "is a tombstone of the type '" + name + "'"));
        }
        return others == null && byType.size() == 1
                ? byType.values().iterator().next()
                : othersOr(event, "is a tombstone");
    }

    /** Returns the method whose type is the most specific of those that the type extends or implements. */
    private Optional<ListenerHandler> ofSupertype(Class<?> type) {
        List<Class<?>> supertypes =
                byType.keySet().stream().filter(t -> t.isAssignableFrom(type)).toList();
        return supertypes.stream()
                .filter(one -> supertypes.stream().allMatch(other -> other.isAssignableFrom(one)))
                .findFirst()
                .map(byType::get);
    }

    private ListenerHandler othersOr(StoredEvent event, String problem) {
        if (others == null) {
            throw refused(event, problem);
        }
        return others;
    }

    private EventSerializationException refused(StoredEvent event, String problem) {
        return new EventSerializationException(
                "The event at " + event.position() + " " + problem + ", and no method of "
                        + listener + " takes it: "
                        + byType.keySet().stream().map(Class::getName).sorted().toList());
    }
}
