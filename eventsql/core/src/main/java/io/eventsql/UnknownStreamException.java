package io.eventsql;

/** Thrown if a stream does not exist; create it with {@link EventSql#createStream}. */
public final class UnknownStreamException extends EventSqlException {
    private static final long serialVersionUID = 1L;

    public UnknownStreamException(String stream) {
        super("There is no stream " + InvalidInputException.shown(stream) + "; create it with createStream");
    }
}
