package io.eventsql.runner.trials;

import io.eventsql.benchmark.event.BenchmarkEvent;

/**
 * A repeated burst of messages.
 *
 * @param messages the messages per trial, 1 to 100,000,000
 * @param repeats the measured trials, 1 to 100,000
 * @param capBytes the maximum bytes of a trial, at least one message; reduces the number of large messages
 * @param eventBytes the exact size of a message, {@value BenchmarkEvent#EVENT_BYTES_MIN} to 4 MiB
 */
public record BlastSettings(int messages, int repeats, long capBytes, int eventBytes) {
    private static final int MESSAGES_MAX = 100_000_000;
    private static final int REPEATS_MAX = 100_000;
    private static final int EVENT_BYTES_MAX = 4 << 20;

    /** @throws IllegalArgumentException if a value is out of range; the message names it and the limit */
    public BlastSettings {
        Ranges.require("blast.messages", messages, 1, MESSAGES_MAX);
        Ranges.require("blast.repeats", repeats, 1, REPEATS_MAX);
        Ranges.require("events.bytes", eventBytes, BenchmarkEvent.EVENT_BYTES_MIN, EVENT_BYTES_MAX);
        Ranges.require("blast.cap_bytes", capBytes, eventBytes, Long.MAX_VALUE);
    }

    /** Returns the messages per trial within the cap. */
    int messagesOfTrial() {
        return (int) Math.min(messages, capBytes / eventBytes);
    }
}
