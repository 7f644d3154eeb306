package io.eventsql.runner.measure;

/**
 * The failures of one class.
 *
 * @param errorClass the exception's class
 * @param events how many events failed with it
 * @param firstMessage the message of the first
 */
public record ErrorCount(String errorClass, long events, String firstMessage) {

    /** Both together; the earlier message stays. */
    public ErrorCount plus(ErrorCount later) {
        return new ErrorCount(errorClass, events + later.events, firstMessage);
    }
}
