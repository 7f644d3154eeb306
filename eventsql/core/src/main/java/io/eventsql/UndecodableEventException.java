package io.eventsql;

import org.jspecify.annotations.Nullable;

/**
 * The failure of a stored event that cannot be decoded, because its headers are not a JSON object or its text is invalid,
 * or that cannot be read, because its row is corrupted. The handler is not called with it; the {@link FailurePolicy} applies
 * at once. A copy of an event that cannot be read has neither key nor value.
 */
public final class UndecodableEventException extends EventSqlException {
    private static final long serialVersionUID = 1L;

    private final transient EventPosition position;
    private final @Nullable String storedHeaders;

    /**
     * Creates the failure of one event.
     *
     * @param storedHeaders the headers as they are stored; {@code null} if there are none, or if they are no valid text
     */
    public UndecodableEventException(EventPosition position, @Nullable String storedHeaders, Throwable cause) {
        super(
                "The event at offset " + position.offset() + " of partition " + position.partition() + " on shard "
                        + position.shard() + " of stream " + position.stream() + " cannot be decoded: "
                        + cause.getMessage(),
                cause);
        this.position = position;
        this.storedHeaders = storedHeaders;
    }

    /** Returns the event's position. */
    public EventPosition position() {
        return position;
    }

    /** Returns the headers as they are stored; {@code null} if there are none, or if they are no valid text. */
    public @Nullable String storedHeaders() {
        return storedHeaders;
    }
}
