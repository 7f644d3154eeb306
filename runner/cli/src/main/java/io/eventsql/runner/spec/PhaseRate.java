package io.eventsql.runner.spec;

import com.fasterxml.jackson.annotation.JsonCreator;
import com.fasterxml.jackson.annotation.JsonValue;
import java.math.BigDecimal;
import java.util.regex.Pattern;

/**
 * The rate of an open-loop phase: a number, or a multiple of an earlier measured rate, written {@code 5x}.
 *
 * @param value events/s, or the factor applied to the rate of the latest measured phase with callers
 * @param isMultiple whether the value is a factor
 */
public record PhaseRate(BigDecimal value, boolean isMultiple) {
    private static final Pattern MULTIPLE = Pattern.compile("[0-9]{1,4}(\\.[0-9]{1,4})?x");
    private static final Pattern NUMBER = Pattern.compile("[0-9]{1,9}");

    /**
     * Parses the form that {@link #json()} returns.
     *
     * @throws IllegalArgumentException if the value is neither an integer nor a multiple
     */
    @JsonCreator(mode = JsonCreator.Mode.DELEGATING)
    public static PhaseRate of(Object json) {
        String text = json.toString();
        if (MULTIPLE.matcher(text).matches()) {
            return new PhaseRate(new BigDecimal(text.substring(0, text.length() - 1)), true);
        }
        if (NUMBER.matcher(text).matches()) {
            return new PhaseRate(new BigDecimal(text), false);
        }
        throw new IllegalArgumentException(
                "must be an integer or a multiple such as 5x or 0.5x, but is '" + text + "'");
    }

    /** Returns the form used in workload files. */
    @JsonValue
    public Object json() {
        return isMultiple ? value.toPlainString() + "x" : (Object) value.longValueExact();
    }

    /**
     * Returns the rate in events/s, rounded and at least 1.
     *
     * @param measured the reference rate of multiples, in events/s
     */
    public long eventsPerSecond(double measured) {
        double rate = isMultiple ? value.doubleValue() * measured : value.doubleValue();
        return Math.max(1, Math.round(rate));
    }
}
