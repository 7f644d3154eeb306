package io.eventsql.benchmark.event;

import java.util.HexFormat;
import java.util.concurrent.ThreadLocalRandom;

/**
 * One event of a benchmark run. Immutable. Encoding and decoding take well under a microsecond.
 *
 * @param run the id of the run: 8 lower-case hexadecimal characters
 * @param runner the number of the sending runner, 0 to {@value #RUNNER_MAX}
 * @param warmup whether it belongs to the warm-up; otherwise it is measured
 * @param number 0 to {@value #NUMBER_MAX}; each runner numbers its warm-up events and its measured events separately
 *     from 0
 * @param intendedAtMicros the intended send time, 0 to {@value #MICROS_MAX} ({@link EpochMicros}); latency counts from
 *     here, so that delays of the sender are included
 */
public record BenchmarkEvent(String run, int runner, boolean warmup, long number, long intendedAtMicros) {
    public static final int RUN_LENGTH = 8;
    public static final int RUNNER_MAX = 999;
    public static final long NUMBER_MAX = 999_999_999_999L;
    public static final long MICROS_MAX = 9_999_999_999_999_999L;
    /** The minimum size for {@link #encode(int)}. */
    public static final int EVENT_BYTES_MIN = 80;

    /** @throws IllegalArgumentException if a field is out of range; the message names the field and the limit */
    public BenchmarkEvent {
        if (!isRun(run)) {
            throw new IllegalArgumentException(
                    "run must be " + RUN_LENGTH + " lower-case hexadecimal characters, but is '" + run + "'");
        }
        requireRange("runner", runner, RUNNER_MAX);
        requireRange("number", number, NUMBER_MAX);
        requireRange("intendedAtMicros", intendedAtMicros, MICROS_MAX);
    }

    /** Returns whether the text is a valid run id. */
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

    /** Returns a random run id. */
    public static String randomRun() {
        return HexFormat.of().toHexDigits(ThreadLocalRandom.current().nextInt());
    }

    /** Encodes the event as JSON of about 230 bytes, with the fields of a random account. */
    public byte[] encode() {
        return AccountCreatedValue.of(this);
    }

    /**
     * Encodes the event as JSON of an exact size, padded with random text.
     *
     * @param eventBytes the size, at least {@value #EVENT_BYTES_MIN}
     * @throws IllegalArgumentException if the size is too small
     */
    public byte[] encode(int eventBytes) {
        if (eventBytes < EVENT_BYTES_MIN) {
            throw new IllegalArgumentException(
                    "eventBytes must be at least " + EVENT_BYTES_MIN + ", but is " + eventBytes);
        }
        return SizedValue.of(this, eventBytes);
    }

    /**
     * Decodes an event. Reads the marker and checks the closing brace, but not the content in between.
     *
     * @throws NotABenchmarkEventException if the value has another form or is truncated
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
