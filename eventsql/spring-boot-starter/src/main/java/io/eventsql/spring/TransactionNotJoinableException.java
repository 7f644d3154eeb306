package io.eventsql.spring;

import org.springframework.transaction.IllegalTransactionStateException;

/** The event was to be published inside a transaction that no event can be part of. Nothing was written. */
public class TransactionNotJoinableException extends IllegalTransactionStateException {
    private static final long serialVersionUID = 1L;

    public TransactionNotJoinableException(String message) {
        super(message);
    }
}
