package io.eventsql.benchmark.settings;

import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Reads settings by name. A variable that is blank counts as not set: container files often pass on empty ones.
 * Immutable.
 */
public final class Variables {
    private final Function<String, @Nullable String> lookup;

    /** @param lookup gives the value of a variable, or {@code null} */
    public Variables(Function<String, @Nullable String> lookup) {
        this.lookup = lookup;
    }

    /** The value without surrounding white space, or {@code null} if it is not set. */
    public @Nullable String find(String name) {
        String value = lookup.apply(name);
        return value == null || value.isBlank() ? null : value.strip();
    }

    public boolean isSet(String name) {
        return find(name) != null;
    }

    public String text(String name, String defaultValue) {
        String value = find(name);
        return value == null ? defaultValue : value;
    }

    /**
     * The value as it stands, white space included.
     *
     * @throws InvalidSettingException if it is not set
     */
    public String secret(String name) {
        String value = lookup.apply(name);
        if (value == null || value.isEmpty()) {
            throw new InvalidSettingException(name, "is missing");
        }
        return value;
    }

    /**
     * The value as a number, or the default if it is not set.
     *
     * @throws InvalidSettingException if it is not a whole number between {@code min} and {@code max}
     */
    public int number(String name, int defaultValue, int min, int max) {
        String value = find(name);
        if (value == null) {
            return defaultValue;
        }
        Integer number = parse(value);
        if (number == null || number < min || number > max) {
            throw new InvalidSettingException(
                    name, "must be a whole number between " + min + " and " + max + ", but is '" + value + "'");
        }
        return number;
    }

    private static @Nullable Integer parse(String value) {
        try {
            return Integer.valueOf(value);
        } catch (NumberFormatException e) {
            return null;
        }
    }
}
