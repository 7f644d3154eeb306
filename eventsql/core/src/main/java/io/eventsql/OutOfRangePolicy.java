package io.eventsql;

/** Where a consumer resumes if retention has removed the next event it would handle. */
public enum OutOfRangePolicy {
    /**
     * It does not resume: the partition stops. {@link ConsumerControl#seek} moves it to an offset that exists, then {@link
     * ConsumerControl#resume} continues. The state shows the error.
     */
    FAIL,
    /** At the first event that still exists. Removed events are skipped. */
    EARLIEST,
    /** After the last event. All events stored so far are skipped. */
    LATEST
}
