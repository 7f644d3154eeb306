package io.eventsql.app.benchmark;

import java.util.LinkedHashMap;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A map that forgets the entry made first when there are too many. Thread-safe. */
final class NewestEntries<K, V> {
    private final int entriesMax;
    private final LinkedHashMap<K, V> entries = new LinkedHashMap<>();

    NewestEntries(int entriesMax) {
        this.entriesMax = entriesMax;
    }

    synchronized @Nullable V find(K key) {
        return entries.get(key);
    }

    synchronized V findOrMake(K key, Supplier<V> maker) {
        V value = entries.get(key);
        if (value == null) {
            value = maker.get();
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
