package io.eventsql.runner.measure;

import java.util.List;

/** Statistical functions. */
public final class Statistics {

    private Statistics() {}

    /**
     * Returns the median; for an even number of values, the mean of the two middle ones.
     *
     * @throws IllegalArgumentException if there are no values
     */
    public static double median(List<Double> values) {
        if (values.isEmpty()) {
            throw new IllegalArgumentException("the median of an empty list is undefined");
        }
        List<Double> sorted = values.stream().sorted().toList();
        int middle = sorted.size() / 2;
        return sorted.size() % 2 == 1 ? sorted.get(middle) : (sorted.get(middle - 1) + sorted.get(middle)) / 2;
    }

    /**
     * Returns a rounded value.
     *
     * @param perUnit the number of steps in a unit, such as 10 for one decimal
     */
    public static double rounded(double value, double perUnit) {
        return Math.round(value * perUnit) / perUnit;
    }

    /** Returns the ratio of two values; 0 if the divisor is not positive. */
    public static double ratio(double value, double of) {
        return of > 0 ? value / of : 0;
    }
}
