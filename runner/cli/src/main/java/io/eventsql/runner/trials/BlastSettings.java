package io.eventsql.runner.trials;

import io.eventsql.benchmark.event.BenchmarkEvent;

/**
 * One burst of messages, repeated.
 *
 * @param messages the messages of a trial, 1 to 100,000,000
 * @param repeats the measured trials, 1 to 100,000
 * @param capBytes the most bytes of a trial: where the messages have more, it has fewer messages; at least those of one
 * @param eventBytes the exact size of a message, {@value BenchmarkEvent#MIN_EVENT_BYTES} to 4 MiB
 */
public record BlastSettings(int messages, int repeats, long capBytes, int eventBytes) {
    private static final int MAX_MESSAGES = 100_000_000;
    private static final int MAX_REPEATS = 100_000;
    private static final int MAX_EVENT_BYTES = 4 << 20;

    /** @throws IllegalArgumentException if a value is out of its range; names it and the limit */
    public BlastSettings {
        Ranges.require("blast.messages", messages, 1, MAX_MESSAGES);
        Ranges.require("blast.repeats", repeats, 1, MAX_REPEATS);
        Ranges.require("events.bytes", eventBytes, BenchmarkEvent.MIN_EVENT_BYTES, MAX_EVENT_BYTES);
        Ranges.require("blast.cap_bytes", capBytes, eventBytes, Long.MAX_VALUE);
    }

    /** The messages of a trial, within the cap. */
    int messagesOfTrial() {
        return (int) Math.min(messages, capBytes / eventBytes);
    }
}
