package io.eventsql.fault;

import java.util.Random;

/** Seeded randomness: printed, and given again with {@code -Deventsql.test.seed=N}. */
final class Seeds {
    /** The system property with the seed. */
    static final String PROPERTY = "eventsql.test.seed";

    private Seeds() {}

    /** The source of a test's random choices; its seed is in the test's output. */
    static Random random(String test) {
        long seed = Long.getLong(PROPERTY, System.nanoTime());
        System.out.println(test + ": repeat with -D" + PROPERTY + "=" + seed);
        return new Random(seed);
    }
}
