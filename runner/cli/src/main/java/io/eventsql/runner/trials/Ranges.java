package io.eventsql.runner.trials;

/** Checks that settings are in range. */
final class Ranges {

    private Ranges() {}

    static void require(String field, long value, long min, long max) {
        if (value < min || value > max) {
            throw new IllegalArgumentException(field + " must be between " + min + " and " + max + ", but is " + value);
        }
    }
}
