package io.eventsql.reader;

import org.jspecify.annotations.Nullable;

/** Thrown if reading failed. Repeating the call fails again, unless it is a {@link DatabaseUnavailableException}. */
public class EventReaderException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Creates an exception without a cause. */
    public EventReaderException(String message) {
        super(message);
    }

    /** Creates an exception with a cause. */
    public EventReaderException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
