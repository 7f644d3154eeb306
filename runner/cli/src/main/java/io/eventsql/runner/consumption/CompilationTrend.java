package io.eventsql.runner.consumption;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.OptionalDouble;

/** The rate of compilation during the last seconds. For use by one thread at a time. */
final class CompilationTrend {
    /** Shorter windows would take a pause between two compilations for the end of compilation. */
    static final long WINDOW_NANOS = 5_000_000_000L;

    /**
     * The rate up to which the JVMs count as warm, in milliseconds of active compilers per second. Some methods reach
     * their threshold minutes after the start; waiting for them would prolong each run.
     */
    static final double WARM_MAX_MS_PER_SECOND = 100;

    private static final double NANOS_PER_SECOND = 1e9;

    private record Sample(long atNanos, long totalMs) {}

    private final Deque<Sample> window = new ArrayDeque<>();

    /** Adds a sample: the compilation time of all JVMs at a point in time. */
    void add(long atNanos, long totalMs) {
        window.addLast(new Sample(atNanos, totalMs));
        // The oldest sample is the newest one that is at least a window old.
        while (window.size() > 2 && isWindowBefore(atNanos, secondOldest())) {
            window.removeFirst();
        }
    }

    private Sample secondOldest() {
        return window.stream().skip(1).findFirst().orElseThrow();
    }

    private static boolean isWindowBefore(long atNanos, Sample sample) {
        return atNanos - sample.atNanos >= WINDOW_NANOS;
    }

    /** Forgets all samples, after one that could not be taken. */
    void clear() {
        window.clear();
    }

    /** Returns the rate over the window; empty until the samples cover it. */
    OptionalDouble msPerSecond() {
        if (window.isEmpty() || !isWindowBefore(window.getLast().atNanos, window.getFirst())) {
            return OptionalDouble.empty();
        }
        Sample first = window.getFirst();
        Sample last = window.getLast();
        return OptionalDouble.of((last.totalMs - first.totalMs) * NANOS_PER_SECOND / (last.atNanos - first.atNanos));
    }

    /** Returns whether the JVMs hardly compiled during the window. */
    boolean isWarm() {
        OptionalDouble rate = msPerSecond();
        return rate.isPresent() && rate.getAsDouble() <= WARM_MAX_MS_PER_SECOND;
    }
}
