package io.eventsql.runner.measure;

import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.stream.IntStream;

/**
 * The ratio of two rates that were measured in turns: the median of the rounds' ratios, with a bootstrap 95 % interval.
 *
 * @param median the median of the rounds' ratios
 * @param low the lower end of the interval
 * @param high the upper end of the interval
 */
public record RatioInterval(double median, double low, double high) {
    private static final int RESAMPLES = 10_000;
    private static final long SEED = 20_261_122;

    /**
     * Computes the interval of {@code b / a}.
     *
     * @param a one rate per round
     * @param b one rate per round, of the same rounds
     */
    public static RatioInterval of(List<Double> a, List<Double> b) {
        if (a.size() != b.size() || a.isEmpty()) {
            throw new IllegalArgumentException("rounds must be paired, but there are " + a.size() + " and " + b.size());
        }
        List<Double> ratios = IntStream.range(0, a.size())
                .mapToObj(i -> Statistics.ratio(b.get(i), a.get(i)))
                .toList();
        Random random = new Random(SEED);
        List<Double> medians = IntStream.range(0, RESAMPLES)
                .mapToObj(i -> Statistics.median(random.ints(ratios.size(), 0, ratios.size())
                        .mapToObj(ratios::get)
                        .toList()))
                .sorted()
                .toList();
        return new RatioInterval(
                Statistics.median(ratios),
                medians.get((int) (0.025 * RESAMPLES)),
                medians.get((int) (0.975 * RESAMPLES) - 1));
    }

    /** Returns the median and the interval as text. */
    public String text() {
        return String.format(Locale.ROOT, "%.3f (%.3f to %.3f)", median, low, high);
    }
}
