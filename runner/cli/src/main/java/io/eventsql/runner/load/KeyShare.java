package io.eventsql.runner.load;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The keys of one caller, used in rotation. Each key belongs to exactly one caller, because with two callers the order
 * of its events would be undefined. For use by one thread at a time.
 */
public final class KeyShare {
    private final List<String> keys;
    private int next;

    private KeyShare(List<String> keys) {
        this.keys = List.copyOf(keys);
    }

    /** Returns a share for events without keys. Its {@link #nextKey()} is always {@code null}. */
    public static KeyShare withoutKeys() {
        return new KeyShare(List.of());
    }

    /** Returns the keys {@code r<runner>-k<n>}, disjoint from those of any other runner. */
    public static List<String> keysOf(int runner, int keys) {
        return IntStream.range(0, keys).mapToObj(n -> "r" + runner + "-k" + n).toList();
    }

    /**
     * Distributes the keys evenly to callers.
     *
     * @param callers the number of callers, from 1 to the number of keys
     * @throws IllegalArgumentException if a caller would have no key
     */
    public static List<KeyShare> split(List<String> keys, int callers) {
        if (keys.size() < callers) {
            throw new IllegalArgumentException(keys.size() + " keys are too few for " + callers + " callers");
        }
        List<KeyShare> shares = new ArrayList<>();
        for (int caller = 0; caller < callers; caller++) {
            List<String> dealt = new ArrayList<>();
            for (int key = caller; key < keys.size(); key += callers) {
                dealt.add(keys.get(key));
            }
            shares.add(new KeyShare(dealt));
        }
        return shares;
    }

    /** Returns the key of the caller's next event, or {@code null} for events without keys. */
    public @Nullable String nextKey() {
        if (keys.isEmpty()) {
            return null;
        }
        String key = keys.get(next);
        next = next + 1 == keys.size() ? 0 : next + 1;
        return key;
    }
}
