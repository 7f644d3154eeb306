package io.eventsql;

/** Thrown by a batch handler to report which of its events failed; the events before it count as handled. */
public class EventFailedException extends Exception {
    private static final long serialVersionUID = 1L;

    private final EventPosition position;

    /**
     * Creates an exception for one event of the batch.
     *
     * @param event the failed event
     * @param cause the cause of the failure; {@link RetryPolicy} decides by it whether to retry
     */
    public EventFailedException(StoredEvent event, Throwable cause) {
        super("event at " + event.position() + " failed: " + cause.getMessage(), cause);
        this.position = event.position();
    }

    /** Returns the position of the failed event. */
    public EventPosition position() {
        return position;
    }
}
