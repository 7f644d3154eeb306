package io.eventsql.reader;

import java.io.Serializable;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * Where reading of a partition continues, with what is needed to recognise that the database has gone back in time. To
 * continue after a restart, store all components.
 *
 * @param offset the offset to read next, 0 or more
 * @param incarnation identifies the history that the position belongs to: the incarnation of the database and the stream's id
 *     in it; {@code null}: the position is not checked yet
 * @param lastOffset the offset of the last event before it, which was read, or was in the log where reading started; -1
 *     if there is none
 * @param lastPublishedAt when that event was published; {@code null} if there is none
 */
public record ReadPosition(
        long offset,
        @Nullable String incarnation,
        long lastOffset,
        @Nullable Instant lastPublishedAt) implements Serializable {

    /** @throws IllegalArgumentException if the offset is negative */
    public ReadPosition {
        if (offset < 0) {
            throw new IllegalArgumentException("offset must not be negative, but is " + offset);
        }
    }

    /** Returns the position at an offset that comes from elsewhere. The first read checks that it is in range. */
    public static ReadPosition at(long offset) {
        return new ReadPosition(offset, null, -1, null);
    }
}
