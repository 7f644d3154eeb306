package io.eventsql;

/** Thrown if a stream does not exist; create it with {@link EventSql#createStream}. */
public final class UnknownStreamException extends EventSqlException {
    private static final long serialVersionUID = 1L;

    public UnknownStreamException(String stream) {
        this(stream, "create it with createStream");
    }

    /** @param remedy how to create it, as the end of the message */
    public UnknownStreamException(String stream, String remedy) {
        super("There is no stream " + InvalidInputException.shown(stream) + "; " + remedy);
    }
}
