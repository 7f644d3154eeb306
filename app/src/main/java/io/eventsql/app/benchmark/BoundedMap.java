package io.eventsql.app.benchmark;

import java.util.LinkedHashMap;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A map with a maximum size that removes the oldest entry. Thread-safe. */
final class BoundedMap<K, V> {
    private final int entriesMax;
    private final LinkedHashMap<K, V> entries = new LinkedHashMap<>();

    BoundedMap(int entriesMax) {
        this.entriesMax = entriesMax;
    }

    synchronized @Nullable V get(K key) {
        return entries.get(key);
    }

    synchronized V getOrCreate(K key, Supplier<V> factory) {
        V value = entries.get(key);
        if (value == null) {
            value = factory.get();
            entries.put(key, value);
            if (entries.size() > entriesMax) {
                entries.pollFirstEntry();
            }
        }
        return value;
    }

    synchronized void removeIf(Predicate<K> condition) {
        entries.keySet().removeIf(condition);
    }
}
