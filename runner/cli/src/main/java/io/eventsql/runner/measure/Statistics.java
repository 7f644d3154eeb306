package io.eventsql.runner.measure;

import java.util.List;

/** What is computed from measured values. */
public final class Statistics {

    private Statistics() {}

    /**
     * The middle value; of an even number of values the mean of the two in the middle.
     *
     * @throws IllegalArgumentException if there is none
     */
    public static double median(List<Double> values) {
        if (values.isEmpty()) {
            throw new IllegalArgumentException("there is no median of nothing");
        }
        List<Double> sorted = values.stream().sorted().toList();
        int middle = sorted.size() / 2;
        return sorted.size() % 2 == 1 ? sorted.get(middle) : (sorted.get(middle - 1) + sorted.get(middle)) / 2;
    }

    /** One value in parts of another; 0 where the other is not above 0, so nothing can be said. */
    public static double ratio(double value, double of) {
        return of > 0 ? value / of : 0;
    }
}
