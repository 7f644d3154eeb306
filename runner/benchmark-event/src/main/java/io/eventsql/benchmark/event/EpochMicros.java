package io.eventsql.benchmark.event;

import java.time.Instant;

/** Times as microseconds since 1970-01-01T00:00:00Z, used for all comparisons between machines. Thread-safe. */
public final class EpochMicros {
    private static final long MICROS_PER_SECOND = 1_000_000;

    private EpochMicros() {}

    /**
     * Returns the time of the system clock. Not derived from {@link System#nanoTime()}, because sender and receiver are
     * different processes, and clock synchronization adjusts only the system clock.
     */
    public static long now() {
        return of(Instant.now());
    }

    /** Converts an instant, truncating nanoseconds. */
    public static long of(Instant instant) {
        return instant.getEpochSecond() * MICROS_PER_SECOND + instant.getNano() / 1_000;
    }

    public static Instant toInstant(long epochMicros) {
        return Instant.ofEpochSecond(
                Math.floorDiv(epochMicros, MICROS_PER_SECOND), Math.floorMod(epochMicros, MICROS_PER_SECOND) * 1_000);
    }
}
