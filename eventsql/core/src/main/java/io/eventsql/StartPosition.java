package io.eventsql;

import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * A place in every partition of a stream: where a new consumer begins, or where {@link ConsumerControl#seek} moves one
 * to. Immutable.
 */
public final class StartPosition {
    /** The first event that exists. */
    public static final StartPosition EARLIEST = new StartPosition("EARLIEST", null, -1);
    /** Behind the last event that exists now. */
    public static final StartPosition LATEST = new StartPosition("LATEST", null, -1);

    private final String name;
    private final @Nullable Instant time;
    private final long offset;

    private StartPosition(String name, @Nullable Instant time, long offset) {
        this.name = name;
        this.time = time;
        this.offset = offset;
    }

    /** The first event published at this time or later, by each database's clock; the head if there is none. */
    public static StartPosition at(Instant time) {
        if ((@Nullable Instant) time == null) {
            throw new InvalidInputException("startPosition.time", "must not be null");
        }
        return new StartPosition(time.toString(), time, -1);
    }

    /**
     * The same offset in each partition. One that does not exist is out of range: {@link OutOfRangePolicy} applies.
     *
     * @param offset 0 or more
     */
    public static StartPosition atOffset(long offset) {
        InvalidInputException.requireRange("startPosition.offset", offset, 0, Long.MAX_VALUE);
        return new StartPosition("offset " + offset, null, offset);
    }

    /** The time of {@link #at}; otherwise {@code null}. */
    public @Nullable Instant time() {
        return time;
    }

    /** The offset of {@link #atOffset}; otherwise -1. */
    public long offset() {
        return offset;
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof StartPosition that && name.equals(that.name);
    }

    @Override
    public int hashCode() {
        return name.hashCode();
    }

    @Override
    public String toString() {
        return name;
    }
}
