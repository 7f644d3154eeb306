package io.eventsql.runner.spec;

import java.time.Duration;
import java.util.List;
import java.util.Map;

/**
 * How close the library comes to the limits of PostgreSQL and of slow handlers, on one database.
 *
 * @param parts the names of the parts, see {@link LimitsPart}; at least one
 * @param storage {@code rows} or {@code blocks}: how the library's streams keep their events in {@code append}, {@code
 *     read}, {@code snapshot}, {@code compaction}, {@code cost}, {@code fanout} and {@code tail}; COPY always writes rows
 * @param numbers the value of each {@link LimitsNumber} by the name of its field
 */
public record LimitsSpec(List<String> parts, String storage, Map<String, Double> numbers) {

    /** Returns an integer. */
    public int integer(LimitsNumber number) {
        return (int) number(number);
    }

    /** Returns a number. */
    public double number(LimitsNumber number) {
        return numbers.getOrDefault(number.field(), number.defaultValue());
    }

    /** Returns the duration of each measurement in a round. */
    public Duration round() {
        return Duration.ofNanos(Math.round(number(LimitsNumber.ROUND_SECONDS) * 1e9));
    }
}
