package io.eventsql.internal.consume;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** The parked keys of one partition; only its owner changes them. Thread-safe. */
final class ParkedKeys {
    private final Set<String> keys = ConcurrentHashMap.newKeySet();

    /** @param keys as they are when the epoch is raised */
    ParkedKeys(Set<String> keys) {
        this.keys.addAll(keys);
    }

    boolean contains(@Nullable String key) {
        return key != null && !keys.isEmpty() && keys.contains(key);
    }

    Set<String> copy() {
        return new HashSet<>(keys);
    }

    void add(String key) {
        keys.add(key);
    }

    void removeAll(List<String> freed) {
        freed.forEach(keys::remove);
    }

    int size() {
        return keys.size();
    }
}
