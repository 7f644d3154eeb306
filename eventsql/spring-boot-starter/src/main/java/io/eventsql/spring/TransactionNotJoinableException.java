package io.eventsql.spring;

import org.springframework.transaction.IllegalTransactionStateException;

/** Thrown if an event is published inside a transaction that it cannot be part of. Nothing was written. */
public class TransactionNotJoinableException extends IllegalTransactionStateException {
    private static final long serialVersionUID = 1L;

    public TransactionNotJoinableException(String message) {
        super(message);
    }
}
