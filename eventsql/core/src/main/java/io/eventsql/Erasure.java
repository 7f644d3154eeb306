package io.eventsql;

import java.time.Instant;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * The progress of an erasure ({@link EventSql#erase(ErasureSpec)}).
 *
 * @param id identifies it on all databases
 * @param stream the stream
 * @param key the key
 * @param startedAt when it was recorded on the first shard that has it, by the clock of its database
 * @param parts one for each shard that has the stream, then one for each outbox
 */
public record Erasure(UUID id, String stream, String key, Instant startedAt, List<Part> parts) {
    /** How far a part is. */
    public enum State {
        /** Statements may still read values. */
        ERASING,
        /** No statement reads a value any more, but files of the database may contain one. */
        ERASED,
        /** The files do not contain the values any more, either. */
        DONE
    }

    /**
     * One shard or one outbox.
     *
     * @param name the name of the shard or of the outbox
     * @param isOutbox whether it is an outbox
     * @param scannedOffsets how many offsets were read; 0 for an outbox
     * @param erasedEvents how many events were erased, with their copies
     * @param filesLeft how many tables may still contain values in their files; 0 as long as none is known
     * @param waitingFor what it waits for; {@code null} if nothing is in its way
     */
    public record Part(
            String name,
            boolean isOutbox,
            State state,
            long scannedOffsets,
            long erasedEvents,
            int filesLeft,
            @Nullable String waitingFor) {}

    /** Copies the list. */
    public Erasure {
        parts = List.copyOf(parts);
    }

    /** Returns whether no statement reads an erased value any more. */
    public boolean isErased() {
        return parts.stream().allMatch(part -> part.state() != State.ERASING);
    }

    /** Returns whether the files do not contain the erased values any more, either. */
    public boolean isDone() {
        return parts.stream().allMatch(part -> part.state() == State.DONE);
    }

    /** Returns how many events were erased, with their copies. */
    public long erasedEvents() {
        return parts.stream().mapToLong(Part::erasedEvents).sum();
    }
}
