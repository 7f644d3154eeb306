package io.eventsql;

import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * A position in every partition of a stream, at which a new consumer starts or to which {@link ConsumerControl#seek}
 * moves one. Immutable.
 */
public final class StartPosition {
    /** The first event that exists. */
    public static final StartPosition EARLIEST = new StartPosition("EARLIEST", null, -1);
    /**
     * After the last event that exists when the position is applied. For a new consumer that is one moment for all
     * shards: on a shard that is joined later it also gets what was published there since the consumer was registered.
     */
    public static final StartPosition LATEST = new StartPosition("LATEST", null, -1);

    private final String name;
    private final @Nullable Instant time;
    private final long offset;

    private StartPosition(String name, @Nullable Instant time, long offset) {
        this.name = name;
        this.time = time;
        this.offset = offset;
    }

    /**
     * Returns the position of the first event published at this time or later, by each database's clock; the head if there
     * is none.
     *
     * @throws InvalidInputException if {@code time} is null
     */
    public static StartPosition at(Instant time) {
        if ((@Nullable Instant) time == null) {
            throw new InvalidInputException("startPosition.time", "must not be null");
        }
        return new StartPosition(time.toString(), time, -1);
    }

    /**
     * Returns the position at the same offset in each partition. If the log starts above it, {@link OutOfRangePolicy}
     * applies to a new consumer; if it is beyond the head, the partition stops. {@link ConsumerControl#seek} is rejected in both cases.
     *
     * @param offset 0 or more
     */
    public static StartPosition atOffset(long offset) {
        InvalidInputException.requireRange("startPosition.offset", offset, 0, Long.MAX_VALUE);
        return new StartPosition("offset " + offset, null, offset);
    }

    /** Returns the time given to {@link #at}; {@code null} for other positions. */
    public @Nullable Instant time() {
        return time;
    }

    /** Returns the offset given to {@link #atOffset}; -1 for other positions. */
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
