package io.eventsql.benchmark.settings;

import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Reads settings by name. A blank variable counts as unset, because container files often pass empty ones. Immutable.
 */
public final class Variables {
    private final Function<String, @Nullable String> lookup;

    /** @param lookup returns the value of a variable, or {@code null} */
    public Variables(Function<String, @Nullable String> lookup) {
        this.lookup = lookup;
    }

    /** Returns the value without surrounding white space, or {@code null} if unset. */
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
     * Returns the unmodified value, including white space.
     *
     * @throws InvalidSettingException if the variable is unset
     */
    public String secret(String name) {
        String value = lookup.apply(name);
        if (value == null || value.isEmpty()) {
            throw new InvalidSettingException(name, "is missing");
        }
        return value;
    }

    /**
     * Returns the value as a number, or the default if unset.
     *
     * @throws InvalidSettingException if the value is not an integer between {@code min} and {@code max}
     */
    public int number(String name, int defaultValue, int min, int max) {
        String value = find(name);
        if (value == null) {
            return defaultValue;
        }
        Integer number = parse(value);
        if (number == null || number < min || number > max) {
            throw new InvalidSettingException(
                    name, "must be an integer between " + min + " and " + max + ", but is '" + value + "'");
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
