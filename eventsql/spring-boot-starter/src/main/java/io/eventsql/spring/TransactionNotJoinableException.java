package io.eventsql.spring;

/**
 * Thrown if an event is published inside a transaction that it cannot be part of. Nothing was written.
 *
 * <p>It is no {@link org.springframework.transaction.TransactionException}, because a transaction manager that gets one
 * from a callback before the commit takes it for a failed commit and does not roll back.
 */
public class TransactionNotJoinableException extends IllegalStateException {
    private static final long serialVersionUID = 1L;

    public TransactionNotJoinableException(String message) {
        super(message);
    }
}
