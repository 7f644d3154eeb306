package io.eventsql.benchmark.event;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.US_ASCII;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The prefix of every value, {@value #LENGTH} bytes: an opening brace and {@code "benchmark":"<run>-<runner, 3
 * digits>-<w or m>-<number, 12 digits>-<intendedAtMicros, 16 digits>"}.
 */
final class Marker {
    static final int LENGTH = 59;

    private static final byte[] OPENING = "{\"benchmark\":\"".getBytes(US_ASCII);
    private static final int RUNNER_DIGITS = 3;
    private static final int NUMBER_DIGITS = 12;
    private static final int MICROS_DIGITS = 16;

    private static final int RUN_AT = 14;
    private static final int RUNNER_AT = RUN_AT + BenchmarkEvent.RUN_LENGTH + 1;
    private static final int PHASE_AT = RUNNER_AT + RUNNER_DIGITS + 1;
    private static final int NUMBER_AT = PHASE_AT + 2;
    private static final int MICROS_AT = NUMBER_AT + NUMBER_DIGITS + 1;
    private static final int QUOTE_AT = MICROS_AT + MICROS_DIGITS;

    private static final byte WARMUP = 'w';
    private static final byte MEASURED = 'm';

    private Marker() {}

    /** The beginning of the markers of a run, up to the number. */
    private record Prefix(String run, int runner, boolean warmup, byte[] text) {

        static Prefix of(BenchmarkEvent event) {
            AsciiWriter out = new AsciiWriter(new byte[NUMBER_AT]);
            out.put(OPENING);
            out.put(event.run().getBytes(US_ASCII));
            out.put('-');
            out.putDigits(event.runner(), RUNNER_DIGITS);
            out.put('-');
            out.put(event.warmup() ? WARMUP : MEASURED);
            out.put('-');
            return new Prefix(event.run(), event.runner(), event.warmup(), out.bytes());
        }

        boolean isOf(BenchmarkEvent event) {
            return warmup == event.warmup() && runner == event.runner() && run.equals(event.run());
        }
    }

    /** The prefix of the latest event written, and the run of the latest one read: almost all events share them. */
    private static volatile @Nullable Prefix written;

    private static volatile @Nullable String readRun;

    static void write(BenchmarkEvent event, AsciiWriter out) {
        Prefix prefix = written;
        if (prefix == null || !prefix.isOf(event)) {
            prefix = Prefix.of(event);
            written = prefix;
        }
        out.put(prefix.text);
        out.putDigits(event.number(), NUMBER_DIGITS);
        out.put('-');
        out.putDigits(event.intendedAtMicros(), MICROS_DIGITS);
        out.put('"');
    }

    static BenchmarkEvent read(byte[] value) {
        if (value.length < LENGTH) {
            throw new NotABenchmarkEventException("it has only " + value.length + " bytes");
        }
        if (!Arrays.equals(value, 0, OPENING.length, OPENING, 0, OPENING.length)) {
            throw new NotABenchmarkEventException("it does not begin with " + new String(OPENING, US_ASCII));
        }
        require(value, RUNNER_AT - 1, '-');
        require(value, PHASE_AT - 1, '-');
        require(value, NUMBER_AT - 1, '-');
        require(value, MICROS_AT - 1, '-');
        require(value, QUOTE_AT, '"');
        require(value, value.length - 1, '}');
        return new BenchmarkEvent(
                readRun(value),
                (int) readDigits(value, RUNNER_AT, RUNNER_DIGITS),
                readPhase(value),
                readDigits(value, NUMBER_AT, NUMBER_DIGITS),
                readDigits(value, MICROS_AT, MICROS_DIGITS));
    }

    private static String readRun(byte[] value) {
        String latest = readRun;
        if (latest != null && isAt(value, latest)) {
            return latest;
        }
        String run = new String(value, RUN_AT, BenchmarkEvent.RUN_LENGTH, ISO_8859_1);
        if (!BenchmarkEvent.isRun(run)) {
            throw new NotABenchmarkEventException("no run's id at byte " + RUN_AT);
        }
        readRun = run;
        return run;
    }

    private static boolean isAt(byte[] value, String run) {
        for (int i = 0; i < BenchmarkEvent.RUN_LENGTH; i++) {
            if (value[RUN_AT + i] != run.charAt(i)) {
                return false;
            }
        }
        return true;
    }

    private static boolean readPhase(byte[] value) {
        byte phase = value[PHASE_AT];
        if (phase != WARMUP && phase != MEASURED) {
            throw new NotABenchmarkEventException("neither w nor m at byte " + PHASE_AT);
        }
        return phase == WARMUP;
    }

    private static long readDigits(byte[] value, int from, int width) {
        long number = 0;
        for (int i = from; i < from + width; i++) {
            int digit = value[i] - '0';
            if (digit < 0 || digit > 9) {
                throw new NotABenchmarkEventException("no digit at byte " + i);
            }
            number = number * 10 + digit;
        }
        return number;
    }

    private static void require(byte[] value, int at, char expected) {
        if (value[at] != expected) {
            throw new NotABenchmarkEventException("no " + expected + " at byte " + at);
        }
    }
}
