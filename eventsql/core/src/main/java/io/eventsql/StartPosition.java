package io.eventsql;

/** Where a consumer that has no offset yet begins. */
public enum StartPosition {
    /** At the first event that is still stored. */
    EARLIEST,
    /** Behind the last event that is stored when the consumer is first started. */
    LATEST
}
