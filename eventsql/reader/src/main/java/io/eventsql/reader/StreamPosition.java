package io.eventsql.reader;

import java.io.Serializable;
import java.time.Instant;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** A position in every partition of a stream: where reading starts, or ends. Immutable. */
public final class StreamPosition implements Serializable {
    private static final long serialVersionUID = 1L;

    /** The first event that exists. */
    public static final StreamPosition EARLIEST = new StreamPosition(Kind.EARLIEST, null, -1);
    /** After the last event that exists when the position is resolved. */
    public static final StreamPosition LATEST = new StreamPosition(Kind.LATEST, null, -1);

    enum Kind {
        EARLIEST,
        LATEST,
        TIME,
        OFFSET
    }

    private final Kind kind;
    private final @Nullable Instant time;
    private final long offset;

    private StreamPosition(Kind kind, @Nullable Instant time, long offset) {
        this.kind = kind;
        this.time = time;
        this.offset = offset;
    }

    /**
     * Returns the position of the first event published at this time or later, by each database's clock; the head if there
     * is none.
     */
    public static StreamPosition at(Instant time) {
        return new StreamPosition(Kind.TIME, Objects.requireNonNull(time, "time"), -1);
    }

    /**
     * Returns the position at the same offset in each partition.
     *
     * @param offset 0 or more
     * @throws IllegalArgumentException if it is negative
     */
    public static StreamPosition atOffset(long offset) {
        if (offset < 0) {
            throw new IllegalArgumentException("offset must not be negative, but is " + offset);
        }
        return new StreamPosition(Kind.OFFSET, null, offset);
    }

    Kind kind() {
        return kind;
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
        return other instanceof StreamPosition that
                && kind == that.kind
                && Objects.equals(time, that.time)
                && offset == that.offset;
    }

    @Override
    public int hashCode() {
        return Objects.hash(kind, time, offset);
    }

    @Override
    public String toString() {
        return switch (kind) {
            case EARLIEST, LATEST -> kind.name();
            case TIME -> String.valueOf(time);
            case OFFSET -> "offset " + offset;
        };
    }
}
