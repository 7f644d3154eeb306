package io.eventsql.reader;

import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * What a {@link StreamCursor} reads. Immutable.
 *
 * @param stream the stream's name
 * @param start where the partitions begin that have no position
 * @param end where all partitions end, resolved when the cursor is opened; {@code null}: the cursor follows the heads
 * @param positions where the partitions continue that were read before
 */
public record CursorSpec(
        String stream,
        StreamPosition start,
        @Nullable StreamPosition end,
        Map<StreamPartition, ReadPosition> positions) {

    /** Copies the positions. */
    public CursorSpec {
        Objects.requireNonNull(stream, "stream");
        Objects.requireNonNull(start, "start");
        positions = Map.copyOf(positions);
    }

    /** Returns a specification that reads everything from the first event on, and then what is published. */
    public static CursorSpec of(String stream) {
        return new CursorSpec(stream, StreamPosition.EARLIEST, null, Map.of());
    }

    /** Returns this specification with another start. */
    public CursorSpec from(StreamPosition newStart) {
        return new CursorSpec(stream, newStart, end, positions);
    }

    /**
     * Returns this specification with an end: {@link StreamPosition#LATEST} for everything that is stored when the cursor is
     * opened. Offsets and times are exclusive.
     */
    public CursorSpec until(StreamPosition newEnd) {
        return new CursorSpec(stream, start, newEnd, positions);
    }

    /** Returns this specification with the positions that another cursor has reached ({@link StreamCursor#positions}). */
    public CursorSpec resuming(Map<StreamPartition, ReadPosition> newPositions) {
        return new CursorSpec(stream, start, end, newPositions);
    }
}
