package io.eventsql.runner.sample;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
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

    /** The end of the columns of the share of all processors' time that sampling took, 0 to 1. */
    static final String SAMPLER_SHARE = ".sampler_share";

    /** Returns a series without samples. */
    public static ResourceSeries empty() {
        return new ResourceSeries(1, List.of(), Map.of());
    }

    /** Returns the share of all processors' time that sampling took, 0 to 1; {@code null} if unknown. */
    public @Nullable Double samplerShare() {
        Double sum = null;
        for (String column : columns.keySet()) {
            Double share = column.endsWith(SAMPLER_SHARE) ? mean(column, 0, t.size()) : null;
            sum = share == null ? sum : (Double) (share + (sum == null ? 0 : sum));
        }
        return sum;
    }

    /** Returns the line of a report about the share that sampling took. */
    public static String samplerLine(double share) {
        return String.format(Locale.ROOT, "Sampling took %.2f %% of the machine's processors", 100 * share);
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
