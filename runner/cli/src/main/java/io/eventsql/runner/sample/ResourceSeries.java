package io.eventsql.runner.sample;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What was used, second by second.
 *
 * @param intervalSeconds always 1
 * @param t seconds since what is measured began
 * @param columns a value for each second by {@code name.what}; {@code null} where there is none
 */
public record ResourceSeries(int intervalSeconds, List<Integer> t, Map<String, List<@Nullable Double>> columns) {

    /** Nothing was looked at. */
    public static ResourceSeries empty() {
        return new ResourceSeries(1, List.of(), Map.of());
    }

    /**
     * The mean of a column over some seconds; {@code null} where it has no value there.
     *
     * @param from the first second
     * @param to behind the last one
     */
    public @Nullable Double mean(String column, int from, int to) {
        List<@Nullable Double> values = columns.getOrDefault(column, List.of());
        List<Double> known = new ArrayList<>();
        for (int second = Math.max(0, from); second < Math.min(to, values.size()); second++) {
            Double value = values.get(second);
            if (value != null) {
                known.add(value);
            }
        }
        return known.isEmpty()
                ? null
                : (Double) known.stream()
                        .mapToDouble(Double::doubleValue)
                        .average()
                        .orElseThrow();
    }
}
