package io.eventsql;

/** Thrown by a batch handler to say which of its events failed: those before it count as handled. */
public class EventFailedException extends Exception {
    private static final long serialVersionUID = 1L;

    private final EventPosition position;

    /**
     * @param event one of the batch
     * @param cause why it failed; decides whether it is tried again
     */
    public EventFailedException(StoredEvent event, Throwable cause) {
        super("event at " + event.position() + " failed: " + cause.getMessage(), cause);
        this.position = event.position();
    }

    /** Where the failed event is. */
    public EventPosition position() {
        return position;
    }
}
