package io.eventsql.runner.result;

import com.fasterxml.jackson.annotation.JsonInclude;
import io.eventsql.runner.measure.Statistics;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * One measured number.
 *
 * @param value the value; of several rounds, their median
 * @param unit such as {@code ms} or {@code events/s}; empty for counts and ratios
 * @param low the lower end of the bootstrap 95 % interval of the median; {@code null} if measured once
 * @param high its upper end; likewise
 * @param rounds the value of each round; {@code null} if measured once
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public record Figure(
        double value,
        String unit,
        @Nullable Double low,
        @Nullable Double high,
        @Nullable List<Double> rounds) {
    /** From here on, decimals do not matter. */
    private static final double WITHOUT_DECIMALS = 100;

    private static final int RESAMPLES = 10_000;
    private static final long SEED = 20_261_122;

    /** Creates a figure that was measured once. */
    public static Figure of(double value, String unit) {
        return new Figure(value, unit, null, null, null);
    }

    /** Creates a ratio that was measured once. */
    public static Figure of(double value) {
        return of(value, "");
    }

    /** Creates a count that was measured once. */
    public static Figure of(long count) {
        return of((double) count, "");
    }

    /** Creates a size or number that was measured once. */
    public static Figure of(long value, String unit) {
        return of((double) value, unit);
    }

    /** Creates the median of at least one round. */
    public static Figure ofRounds(List<Double> rounds, String unit) {
        double median = Statistics.median(rounds);
        if (rounds.size() == 1) {
            return new Figure(median, unit, null, null, rounds);
        }
        Random random = new Random(SEED);
        List<Double> medians = IntStream.range(0, RESAMPLES)
                .mapToObj(i -> Statistics.median(random.ints(rounds.size(), 0, rounds.size())
                        .mapToObj(rounds::get)
                        .toList()))
                .sorted()
                .toList();
        return new Figure(
                median,
                unit,
                medians.get((int) (0.025 * RESAMPLES)),
                medians.get((int) (0.975 * RESAMPLES) - 1),
                rounds);
    }

    /**
     * Creates the median ratio {@code b / a}.
     *
     * @param a one value per round
     * @param b one value per round, of the same rounds
     */
    public static Figure ofRatios(List<Double> a, List<Double> b, String unit) {
        if (a.size() != b.size()) {
            throw new IllegalArgumentException("rounds must be paired, but there are " + a.size() + " and " + b.size());
        }
        return ofRounds(
                IntStream.range(0, a.size())
                        .mapToObj(i -> Statistics.ratio(b.get(i), a.get(i)))
                        .toList(),
                unit);
    }

    /** Returns the ratio of this figure to another one of the same rounds. */
    public Figure ratioTo(Figure other) {
        return ofRatios(other.valueOfRounds(), valueOfRounds(), "");
    }

    private List<Double> valueOfRounds() {
        List<Double> values = rounds;
        return values == null ? List.of(value) : values;
    }

    /** Returns the number with its interval, without the unit. */
    String text() {
        Double from = low;
        Double to = high;
        boolean decimals = Math.abs(value) < WITHOUT_DECIMALS && (from != null || value != Math.rint(value));
        String form = decimals ? "%,.3f" : "%,.0f";
        return from == null || to == null
                ? String.format(Locale.ROOT, form, value)
                : String.format(Locale.ROOT, form + " (" + form + " to " + form + ")", value, from, to);
    }
}
