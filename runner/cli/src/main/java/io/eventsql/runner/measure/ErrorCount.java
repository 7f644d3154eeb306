package io.eventsql.runner.measure;

/**
 * The failures of one exception class.
 *
 * @param errorClass the exception class
 * @param events the number of failed events
 * @param firstMessage the message of the first failure
 */
public record ErrorCount(String errorClass, long events, String firstMessage) {

    /** Returns the sum of both, with the message of the earlier one. */
    public ErrorCount plus(ErrorCount later) {
        return new ErrorCount(errorClass, events + later.events, firstMessage);
    }
}
