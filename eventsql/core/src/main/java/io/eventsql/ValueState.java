package io.eventsql;

/** Whether a stored event has a value. */
public enum ValueState {
    /** It has a value, which may be empty. */
    PRESENT,
    /** It was published without a value: its key is deleted ({@link Event#tombstone}). */
    TOMBSTONE,
    /** Its value was erased ({@link EventSql#erase(ErasureSpec)}). It is no tombstone: its key is not deleted. */
    ERASED
}
