package io.eventsql.internal.sql;

import java.util.AbstractMap;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Headers that are decoded when they are first used, since most handlers use none. Unmodifiable and thread-safe. */
final class LazyHeaders extends AbstractMap<String, String> {
    private final String json;
    private volatile @Nullable Map<String, String> decoded;

    /** @param json a JSON object with at least one member, which was checked */
    LazyHeaders(String json) {
        this.json = json;
    }

    String json() {
        return json;
    }

    private Map<String, String> decoded() {
        Map<String, String> known = decoded;
        if (known == null) {
            known = HeadersJson.decode(json); // by several threads at worst, with equal results
            decoded = known;
        }
        return known;
    }

    @Override
    public boolean isEmpty() {
        return false;
    }

    @Override
    public @Nullable String get(@Nullable Object name) {
        return decoded().get(name);
    }

    @Override
    public boolean containsKey(@Nullable Object name) {
        return decoded().containsKey(name);
    }

    @Override
    public Set<Entry<String, String>> entrySet() {
        return decoded().entrySet();
    }
}
