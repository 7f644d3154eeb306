package io.eventsql.internal.sql;

/** What an error of the database says about the statement that failed; see {@link SqlErrors#classify}. */
public enum ErrorKind {
    /** There was no connection, so the statement was not sent. */
    NOT_SENT,
    /** The statement was sent, and may be committed or not. */
    IN_DOUBT,
    /** Rolled back, or not begun, because of the condition of the databases: the same statement can succeed later. */
    ENVIRONMENT,
    /** Rolled back because of what was to be written: the same content fails again, other content succeeds. */
    CONTENT,
    /** Rolled back because the library and the database disagree: each SQLSTATE has its own remedy. */
    PROTOCOL
}
