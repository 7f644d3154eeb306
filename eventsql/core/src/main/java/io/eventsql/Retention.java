package io.eventsql;

import java.time.Duration;
import java.time.temporal.ChronoUnit;
import org.jspecify.annotations.Nullable;

/**
 * How long a stream keeps its events. Each limit holds by itself: events expire as soon as one of them is exceeded. They
 * expire in whole segments, from the oldest on, so up to a segment's events stay longer; new segments are sized to an eighth
 * of the smallest limit. A consumer that has not handled expired events continues as its {@link OutOfRangePolicy} says.
 * Immutable; each {@code with} method returns a changed copy.
 *
 * @param maxAge events older than this expire, by the database's clock: 1 second to 100 years, in milliseconds; {@code
 *     null}: no such limit
 * @param maxBytes the oldest events of a partition on one shard expire when those after them take this much space with
 *     their index, at least 1; {@code null}: no such limit
 * @param maxEvents the oldest events of a partition on one shard expire when there are this many after them, at least 1;
 *     {@code null}: no such limit
 * @param expireHandled whether events expire when all consumers of the stream have handled them. As long as the stream has no
 *     consumer, they do not.
 * @param abandonedAfter a consumer that is behind and has not committed an offset for this time does not keep events any more
 *     ({@code expireHandled}): 1 second to 100 years, in milliseconds
 */
public record Retention(
        @Nullable Duration maxAge,
        @Nullable Long maxBytes,
        @Nullable Long maxEvents,
        boolean expireHandled,
        Duration abandonedAfter) {
    public static final Duration DEFAULT_ABANDONED_AFTER = Duration.ofDays(7);

    private static final Duration TIME_MIN = Duration.ofSeconds(1);
    private static final Duration TIME_MAX = Duration.ofDays(36_500);

    /** The default: events never expire. */
    public static final Retention FOREVER = new Retention(null, null, null, false, DEFAULT_ABANDONED_AFTER);

    /**
     * Validates the limits.
     *
     * @throws InvalidInputException if one is out of range; names it and the range
     */
    public Retention {
        maxAge = maxAge == null ? null : requireTime("retention.maxAge", maxAge);
        requirePositive("retention.maxBytes", maxBytes);
        requirePositive("retention.maxEvents", maxEvents);
        abandonedAfter = requireTime("retention.abandonedAfter", abandonedAfter);
    }

    private static Duration requireTime(String field, Duration time) {
        InvalidInputException.requireGiven(field, time);
        Settings.requireDuration(field, time, TIME_MIN, TIME_MAX);
        return time.truncatedTo(ChronoUnit.MILLIS);
    }

    private static void requirePositive(String field, @Nullable Long value) {
        if (value != null) {
            InvalidInputException.requireRange(field, value, 1, Long.MAX_VALUE);
        }
    }

    /** Returns a copy by which events expire when they are older than {@code age}. */
    public Retention withMaxAge(Duration age) {
        return new Retention(
                InvalidInputException.requireGiven("retention.maxAge", age),
                maxBytes,
                maxEvents,
                expireHandled,
                abandonedAfter);
    }

    /** Returns a copy with another size of a partition above which its oldest events expire. */
    public Retention withMaxBytes(long bytes) {
        return new Retention(maxAge, bytes, maxEvents, expireHandled, abandonedAfter);
    }

    /** Returns a copy with another number of events of a partition above which its oldest ones expire. */
    public Retention withMaxEvents(long events) {
        return new Retention(maxAge, maxBytes, events, expireHandled, abandonedAfter);
    }

    /** Returns a copy by which events expire when all consumers have handled them. */
    public Retention withExpireHandled() {
        return new Retention(maxAge, maxBytes, maxEvents, true, abandonedAfter);
    }

    /** Returns a copy with another time after which a consumer that does not commit keeps no events any more. */
    public Retention withAbandonedAfter(Duration time) {
        return new Retention(maxAge, maxBytes, maxEvents, expireHandled, time);
    }

    /** Returns whether events never expire. */
    public boolean isForever() {
        return maxAge == null && maxBytes == null && maxEvents == null && !expireHandled;
    }
}
