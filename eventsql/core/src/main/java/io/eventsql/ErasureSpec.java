package io.eventsql;

import java.time.Duration;
import java.util.Collection;
import java.util.Set;
import java.util.TreeSet;

/**
 * What {@link EventSql#erase(ErasureSpec)} erases, and how fast. Immutable.
 *
 * @param stream the stream
 * @param key the key whose events are erased
 * @param headers the names of headers whose values are erased, too; empty by default
 * @param deadLetterStreams streams that may have dead letters of the stream; by default the stream's name with the suffix
 *     of {@link ConsumerSpec#deadLetterStream()}. Those that parked events refer to are always included.
 * @param stepEvents the maximum number of events that a transaction reads, 1 to {@value #STEP_EVENTS_MAX}; {@value
 *     #DEFAULT_STEP_EVENTS} by default
 * @param pause the pause after each transaction, 0 to 1 minute; 10 ms by default
 * @param timeout how long the call waits, without any progress, for what is in its way, such as a transaction that may still
 *     read the erased values, 0 to 1 day; 1 minute by default
 */
public record ErasureSpec(
        String stream,
        String key,
        Set<String> headers,
        Set<String> deadLetterStreams,
        int stepEvents,
        Duration pause,
        Duration timeout) {
    /** The upper limit of {@link #stepEvents}. */
    public static final int STEP_EVENTS_MAX = 1_000_000;
    /** The default of {@link #stepEvents}. */
    public static final int DEFAULT_STEP_EVENTS = 10_000;

    private static final Duration DEFAULT_PAUSE = Duration.ofMillis(10);
    private static final Duration DEFAULT_TIMEOUT = Duration.ofMinutes(1);
    private static final long PAUSE_MS_MAX = Duration.ofMinutes(1).toMillis();
    private static final long TIMEOUT_MS_MAX = Duration.ofDays(1).toMillis();
    private static final int NAMES_MAX = 100;

    /** Validates the values. */
    public ErasureSpec {
        Names.requireStreamName("erasure.stream", stream);
        InvalidInputException.requireGiven("erasure.key", key);
        headers = copy("erasure.headers", headers);
        deadLetterStreams = copy("erasure.deadLetterStreams", deadLetterStreams);
        deadLetterStreams.forEach(name -> Names.requireStreamName("erasure.deadLetterStreams", name));
        InvalidInputException.requireRange("erasure.stepEvents", stepEvents, 1, STEP_EVENTS_MAX);
        InvalidInputException.requireGiven("erasure.pause", pause);
        InvalidInputException.requireRange("erasure.pause (ms)", pause.toMillis(), 0, PAUSE_MS_MAX);
        InvalidInputException.requireGiven("erasure.timeout", timeout);
        InvalidInputException.requireRange("erasure.timeout (ms)", timeout.toMillis(), 0, TIMEOUT_MS_MAX);
    }

    private static Set<String> copy(String field, Collection<String> names) {
        InvalidInputException.requireGiven(field, names);
        InvalidInputException.requireRange(field + " (number)", names.size(), 0, NAMES_MAX);
        names.forEach(name -> InvalidInputException.requireGiven(field, name));
        return Set.copyOf(new TreeSet<>(names));
    }

    /** Returns the erasure of a key's values, with the defaults. */
    public static ErasureSpec of(String stream, String key) {
        InvalidInputException.requireGiven("erasure.stream", stream);
        return new ErasureSpec(
                stream,
                key,
                Set.of(),
                Set.of(stream + ConsumerSpec.DEAD_LETTER_SUFFIX),
                DEFAULT_STEP_EVENTS,
                DEFAULT_PAUSE,
                DEFAULT_TIMEOUT);
    }

    /** Returns a copy that also erases the values of these headers. */
    public ErasureSpec withHeaders(String... names) {
        InvalidInputException.requireGiven("erasure.headers", names);
        return new ErasureSpec(
                stream, key, copy("erasure.headers", listOf(names)), deadLetterStreams, stepEvents, pause, timeout);
    }

    /** Returns a copy with these {@link #deadLetterStreams} in place of the default one, which must be named, too. */
    public ErasureSpec withDeadLetterStreams(String... names) {
        InvalidInputException.requireGiven("erasure.deadLetterStreams", names);
        return new ErasureSpec(
                stream, key, headers, copy("erasure.deadLetterStreams", listOf(names)), stepEvents, pause, timeout);
    }

    private static Collection<String> listOf(String... names) {
        return java.util.Arrays.asList(names);
    }

    /** Returns a copy with another {@link #stepEvents}. */
    public ErasureSpec withStepEvents(int value) {
        return new ErasureSpec(stream, key, headers, deadLetterStreams, value, pause, timeout);
    }

    /** Returns a copy with another {@link #pause}. */
    public ErasureSpec withPause(Duration value) {
        return new ErasureSpec(stream, key, headers, deadLetterStreams, stepEvents, value, timeout);
    }

    /** Returns a copy with another {@link #timeout}. */
    public ErasureSpec withTimeout(Duration value) {
        return new ErasureSpec(stream, key, headers, deadLetterStreams, stepEvents, pause, value);
    }
}
