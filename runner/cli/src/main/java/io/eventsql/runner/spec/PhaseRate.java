package io.eventsql.runner.spec;

import com.fasterxml.jackson.annotation.JsonCreator;
import com.fasterxml.jackson.annotation.JsonValue;
import java.math.BigDecimal;
import java.util.regex.Pattern;

/**
 * The rate of an open-loop phase: a number, or a multiple of what was measured before, written {@code 5x}.
 *
 * @param value events/s, or how many times the rate of the latest measured phase with callers
 * @param isMultiple which of both
 */
public record PhaseRate(BigDecimal value, boolean isMultiple) {
    private static final Pattern MULTIPLE = Pattern.compile("[0-9]{1,4}(\\.[0-9]{1,4})?x");
    private static final Pattern NUMBER = Pattern.compile("[0-9]{1,9}");

    /**
     * Reads what {@link #json()} gives.
     *
     * @throws IllegalArgumentException if it is neither a whole number nor a multiple
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
                "must be a whole number or a multiple such as 5x or 0.5x, but is '" + text + "'");
    }

    /** As it stands in a workload file. */
    @JsonValue
    public Object json() {
        return isMultiple ? value.toPlainString() + "x" : (Object) value.longValueExact();
    }

    /**
     * Events/s, whole and at least 1.
     *
     * @param measured what multiples refer to, events/s
     */
    public long eventsPerSecond(double measured) {
        double rate = isMultiple ? value.doubleValue() * measured : value.doubleValue();
        return Math.max(1, Math.round(rate));
    }
}
