package io.eventsql.runner.sample;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The resource usage by second.
 *
 * @param intervalSeconds always 1
 * @param t the seconds since the start of the measurement
 * @param columns the values of each second by column {@code name.what}; {@code null} if unknown
 */
public record ResourceSeries(int intervalSeconds, List<Integer> t, Map<String, List<@Nullable Double>> columns) {
    /** The column of the share of all processors' time in which they were busy, 0 to 1. */
    public static final String MACHINE_BUSY_SHARE = "machine.busy_share";

    /** Returns a series without samples. */
    public static ResourceSeries empty() {
        return new ResourceSeries(1, List.of(), Map.of());
    }

    /**
     * Returns the mean of a column over a range of seconds; {@code null} if it has no value there.
     *
     * @param from the first second, inclusive
     * @param to the last second, exclusive
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
