package io.eventsql;

import java.security.SecureRandom;
import java.time.Duration;
import java.time.Instant;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Makes the ids of scheduled events: UUIDs of version 7, which begin with the time at which the event is due, in milliseconds.
 * Ids for the same time that one process makes are ordered as they were made. They contain nothing else but a counter and
 * random bits of the process. Thread-safe.
 */
public final class ScheduleId {
    /** How far ahead an event can be scheduled. */
    public static final Duration AHEAD_MAX = Duration.ofDays(3_653);

    private static final int VERSION = 7;
    private static final long VERSION_BITS = (long) VERSION << 12;
    private static final int TIME_SHIFT = 16;
    private static final long COUNTER_HIGH_MASK = 0xfff;
    private static final int COUNTER_LOW_BITS = 22;
    private static final long COUNTER_LOW_MASK = (1L << COUNTER_LOW_BITS) - 1;
    private static final int PROCESS_BITS = 40;
    private static final int COUNTER_START_BITS = 32;
    private static final long VARIANT_BITS = 1L << 63;

    private static final SecureRandom RANDOM = new SecureRandom();
    private static final long PROCESS = RANDOM.nextLong() >>> (Long.SIZE - PROCESS_BITS);
    private static final AtomicLong COUNTER = new AtomicLong(RANDOM.nextLong() >>> (Long.SIZE - COUNTER_START_BITS));

    private ScheduleId() {}

    /**
     * Returns a new id for an event.
     *
     * @param due when to append the event, rounded up to milliseconds; now, if it is in the past
     * @throws InvalidInputException if that is more than {@link #AHEAD_MAX} ahead
     */
    public static UUID next(Instant due) {
        Instant now = Instant.now();
        if (InvalidInputException.requireGiven("due", due).isAfter(now.plus(AHEAD_MAX))) {
            throw new InvalidInputException("due", "is " + due + ", more than " + AHEAD_MAX.toDays() + " days ahead");
        }
        long dueMs =
                due.isBefore(now) ? now.toEpochMilli() : due.plusNanos(999_999).toEpochMilli();
        long count = COUNTER.getAndIncrement();
        long counterHigh = (count >>> COUNTER_LOW_BITS) & COUNTER_HIGH_MASK;
        long counterLow = (count & COUNTER_LOW_MASK) << PROCESS_BITS;
        return new UUID((dueMs << TIME_SHIFT) | VERSION_BITS | counterHigh, VARIANT_BITS | counterLow | PROCESS);
    }

    /**
     * Returns when the event of an id is due.
     *
     * @throws InvalidInputException if it is not an id made by {@link #next}
     */
    public static Instant due(UUID id) {
        if (InvalidInputException.requireGiven("id", id).version() != VERSION || id.getMostSignificantBits() < 0) {
            throw new InvalidInputException("id", "must be the id of a scheduled event, but is " + id);
        }
        return Instant.ofEpochMilli(id.getMostSignificantBits() >>> TIME_SHIFT);
    }
}
