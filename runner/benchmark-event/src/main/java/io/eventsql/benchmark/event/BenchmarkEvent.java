package io.eventsql.benchmark.event;

import java.util.HexFormat;
import java.util.concurrent.ThreadLocalRandom;

/**
 * One event of a benchmark run. Immutable; encoding and decoding are thread-safe and cost well under a microsecond.
 *
 * @param run the run's id: 8 lower-case hexadecimal characters
 * @param runner the number of the runner that sends it, 0 to {@value #RUNNER_MAX}
 * @param warmup whether it belongs to the warm-up; {@code false}: it is measured
 * @param number 0 to {@value #NUMBER_MAX}: each runner numbers its warm-up events and its measured events apart, both
 *     from 0
 * @param intendedAtMicros when it was meant to be sent, 0 to {@value #MICROS_MAX} ({@link EpochMicros}): latency counts
 *     from here, so that a sender that falls behind hides nothing
 */
public record BenchmarkEvent(String run, int runner, boolean warmup, long number, long intendedAtMicros) {
    public static final int RUN_LENGTH = 8;
    public static final int RUNNER_MAX = 999;
    public static final long NUMBER_MAX = 999_999_999_999L;
    public static final long MICROS_MAX = 9_999_999_999_999_999L;
    /** The fewest bytes {@link #encode(int)} can make. */
    public static final int EVENT_BYTES_MIN = 80;

    /** @throws IllegalArgumentException if a field is out of its range; names the field and the limit */
    public BenchmarkEvent {
        if (!isRun(run)) {
            throw new IllegalArgumentException(
                    "run must be " + RUN_LENGTH + " lower-case hexadecimal characters, but is '" + run + "'");
        }
        requireRange("runner", runner, RUNNER_MAX);
        requireRange("number", number, NUMBER_MAX);
        requireRange("intendedAtMicros", intendedAtMicros, MICROS_MAX);
    }

    /** Whether the text has the form of a run's id. */
    public static boolean isRun(String text) {
        if (text.length() != RUN_LENGTH) {
            return false;
        }
        for (int i = 0; i < RUN_LENGTH; i++) {
            char c = text.charAt(i);
            if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) {
                return false;
            }
        }
        return true;
    }

    /** A run's id that is new for all practical purposes. */
    public static String randomRun() {
        return HexFormat.of().toHexDigits(ThreadLocalRandom.current().nextInt());
    }

    /** The event as JSON of about 230 bytes, with the fields of a created account; these are random. */
    public byte[] encode() {
        return AccountCreatedValue.of(this);
    }

    /**
     * The event as JSON of an exact size, filled with random text.
     *
     * @param eventBytes at least {@value #EVENT_BYTES_MIN}
     * @throws IllegalArgumentException if it is less
     */
    public byte[] encode(int eventBytes) {
        if (eventBytes < EVENT_BYTES_MIN) {
            throw new IllegalArgumentException(
                    "eventBytes must be at least " + EVENT_BYTES_MIN + ", but is " + eventBytes);
        }
        return SizedValue.of(this, eventBytes);
    }

    /**
     * The event that was encoded. Reads the marker at its beginning and checks that the end is there; what stands
     * between is not looked at.
     *
     * @throws NotABenchmarkEventException if the value is something else, or cut off
     */
    public static BenchmarkEvent decode(byte[] value) {
        return Marker.read(value);
    }

    private static void requireRange(String field, long value, long max) {
        if (value < 0 || value > max) {
            throw new IllegalArgumentException(field + " must be between 0 and " + max + ", but is " + value);
        }
    }
}
