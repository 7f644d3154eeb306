package io.eventsql.benchmark.event;

import java.time.Instant;

/**
 * Times as microseconds since 1970-01-01T00:00:00Z: the unit of everything a benchmark compares between machines.
 * Thread-safe.
 */
public final class EpochMicros {
    private static final long MICROS_PER_SECOND = 1_000_000;

    private EpochMicros() {}

    /**
     * The system clock's time. Read anew each time and not derived from {@link System#nanoTime()}: sender and receiver
     * are different processes, and what keeps their clocks together corrects only this one.
     */
    public static long now() {
        return of(Instant.now());
    }

    /** The instant's time; parts of a microsecond are dropped. */
    public static long of(Instant instant) {
        return instant.getEpochSecond() * MICROS_PER_SECOND + instant.getNano() / 1_000;
    }

    public static Instant toInstant(long epochMicros) {
        return Instant.ofEpochSecond(
                Math.floorDiv(epochMicros, MICROS_PER_SECOND), Math.floorMod(epochMicros, MICROS_PER_SECOND) * 1_000);
    }
}
