package io.eventsql;

import java.time.Duration;
import java.time.temporal.ChronoUnit;

/**
 * Compaction of a stream: of the events of one key in a partition the last one stays, the earlier ones are removed in the
 * background. Offsets and order stay as they are; events without a key stay. An event is removed some time after its segment
 * has ended, so a reader always finds the last event of each key, and may find earlier ones. Immutable.
 *
 * @param tombstoneDelay how long an event without a value (a tombstone) stays at least, by the database's clock, if it is the
 *     last of its key: 1 second to 100 years, in milliseconds. It also stays until all consumers of the stream have handled
 *     it, except those that have not committed for {@link Retention#abandonedAfter()}.
 */
public record Compaction(Duration tombstoneDelay) {
    public static final Duration DEFAULT_TOMBSTONE_DELAY = Duration.ofHours(24);

    private static final Duration DELAY_MIN = Duration.ofSeconds(1);
    private static final Duration DELAY_MAX = Duration.ofDays(36_500);

    /** Tombstones stay for {@link #DEFAULT_TOMBSTONE_DELAY}. */
    public static final Compaction DEFAULT = new Compaction(DEFAULT_TOMBSTONE_DELAY);

    /**
     * Validates the delay.
     *
     * @throws InvalidInputException if it is out of range; names the range
     */
    public Compaction {
        InvalidInputException.requireGiven("compaction.tombstoneDelay", tombstoneDelay);
        Settings.requireDuration("compaction.tombstoneDelay", tombstoneDelay, DELAY_MIN, DELAY_MAX);
        tombstoneDelay = tombstoneDelay.truncatedTo(ChronoUnit.MILLIS);
    }
}
