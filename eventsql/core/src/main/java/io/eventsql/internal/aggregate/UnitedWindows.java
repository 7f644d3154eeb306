package io.eventsql.internal.aggregate;

import io.eventsql.ContinuousAggregate.Measure;
import io.eventsql.ContinuousAggregate.Window;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Unites the windows of several shards, each of which returned its first ones. */
final class UnitedWindows {
    /** As the databases order them: by start, then by the bytes of the key, without a key first. */
    private static final Comparator<Window> ORDER =
            Comparator.comparing(Window::start).thenComparing(w -> w.key(), UnitedWindows::compareKeys);

    private UnitedWindows() {}

    /**
     * Returns the first windows of all shards.
     *
     * @param ofShards at least the first {@code max} windows of each shard
     */
    static List<Window> of(List<List<Window>> ofShards, int max) {
        Map<Window, Window> united = new TreeMap<>(ORDER);
        ofShards.forEach(windows -> windows.forEach(window -> united.merge(window, window, UnitedWindows::plus)));
        return united.values().stream().limit(max).toList();
    }

    private static Window plus(Window a, Window b) {
        Map<String, Measure> measures = new LinkedHashMap<>(a.measures());
        b.measures().forEach((name, measure) -> measures.merge(name, measure, Measure::plus));
        return new Window(a.start(), a.key(), a.events() + b.events(), measures);
    }

    private static int compareKeys(@Nullable String a, @Nullable String b) {
        if (a == null || b == null) {
            return Boolean.compare(a != null, b != null);
        }
        return Arrays.compareUnsigned(a.getBytes(StandardCharsets.UTF_8), b.getBytes(StandardCharsets.UTF_8));
    }
}
