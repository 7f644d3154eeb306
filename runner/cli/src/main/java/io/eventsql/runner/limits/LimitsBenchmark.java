package io.eventsql.runner.limits;

import com.fasterxml.jackson.annotation.JsonValue;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/** What can be measured by itself. */
public enum LimitsBenchmark {
    /** Appending through binary COPY and through the library. */
    APPEND,
    /** Reading in pages of several sizes, never analyzed and analyzed. */
    READ,
    /** Publish latency without and with an old snapshot held open. */
    SNAPSHOT,
    /** Handling with a slow handler, one event after the other and several keys at the same time. */
    HANDLERS,
    /** Publishing inside transactions next to a plain row in them, and how fast the relay is. */
    TRANSACTIONS,
    /** Publishing inside transactions, without and with an old snapshot held open. */
    OUTBOX;

    /** Its name on the command line and in the result. */
    @JsonValue
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** The part of that name. */
    public static Optional<LimitsBenchmark> of(String label) {
        return Arrays.stream(values())
                .filter(benchmark -> benchmark.label().equals(label))
                .findFirst();
    }

    /** All names, in the order in which the parts are measured. */
    public static List<String> labels() {
        return Arrays.stream(values()).map(LimitsBenchmark::label).toList();
    }
}
