package io.eventsql.internal.consume;

import java.sql.Connection;
import java.sql.SQLException;

/** Statements that are committed together with an offset, or not at all. */
@FunctionalInterface
interface TransactionStep {
    TransactionStep NONE = connection -> {};

    /** Called before the transaction begins, and again before each further attempt, without a connection. */
    default void prepare() throws SQLException {}

    void run(Connection connection) throws SQLException;
}
