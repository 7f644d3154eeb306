package io.eventsql;

/**
 * What a consumer does where events are missing from the log: their offsets lie between the log's start and its head, but
 * their rows do not exist, for example because they were deleted with SQL.
 */
public enum MissingEventPolicy {
    /**
     * The partition stops before the missing events, after everything before them is handled. The error names the range.
     * {@link ConsumerControl#seek(EventPosition)} moves the consumer past it, then {@link ConsumerControl#resume} continues.
     */
    STOP,
    /**
     * The missing events are skipped: the offset past them is committed, then the range is logged as a warning and
     * reported to {@link ConsumerListener#eventsMissing}.
     */
    SKIP
}
