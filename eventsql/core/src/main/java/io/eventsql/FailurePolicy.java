package io.eventsql;

/** What becomes of an event whose handler fails and may not be tried again. */
public enum FailurePolicy {
    /** The partition stops at the event, visibly, until it is resumed: nothing is passed over. */
    STOP,
    /**
     * The event is copied to the stream's dead-letter stream, {@link ConsumerSpec#deadLetterStream()}, and passed over.
     * Copy and offset are committed together.
     */
    DEAD_LETTER,
    /**
     * The event and all later ones of its key are set aside, in order, until they are redriven or dropped; other keys
     * flow. Events without a key are dead-lettered.
     */
    PARK_KEY
}
