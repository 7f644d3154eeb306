package io.eventsql.internal.consume;

import io.eventsql.StoredEvent;
import io.eventsql.UndecodableEventException;
import io.eventsql.internal.sql.HeadersJson;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** The events of a partition that are fetched, not yet passed, and cannot be decoded; usually none. Thread-safe. */
final class UndecodableEvents {
    private final Map<Long, UndecodableEventException> failures = new ConcurrentHashMap<>();

    /** Records those among the events from {@code first} up to but not {@code next}, which were fetched now. */
    void record(long first, long next, Map<Long, UndecodableEventException> fetched) {
        remove(first, next); // of an earlier fetch
        failures.putAll(fetched);
    }

    void add(UndecodableEventException failure) {
        failures.put(failure.position().offset(), failure);
    }

    /** Forgets events from {@code first} up to but not {@code next}: they are passed. */
    void remove(long first, long next) {
        if (!failures.isEmpty()) {
            failures.keySet().removeIf(offset -> offset >= first && offset < next);
        }
    }

    boolean contains(StoredEvent event) {
        return failure(event) != null;
    }

    /** Returns why an event cannot be handled; {@code null} if it can. */
    @Nullable
    UndecodableEventException failure(StoredEvent event) {
        return failures.isEmpty() ? null : failures.get(event.offset());
    }

    /** Returns an event's headers as JSON, unchanged if they cannot be decoded; {@code null} if it has none. */
    @Nullable
    String headersJson(StoredEvent event) {
        UndecodableEventException failure = failure(event);
        if (failure != null) {
            return failure.storedHeaders();
        }
        return event.headers().isEmpty() ? null : HeadersJson.encode(event.headers());
    }
}
