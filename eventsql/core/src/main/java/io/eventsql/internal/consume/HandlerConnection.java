package io.eventsql.internal.consume;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.Set;

/** The connection of a transactional handler: it refuses to end the transaction, because the library does that. */
final class HandlerConnection {
    private static final Set<String> REFUSED = Set.of(
            "commit", "close", "abort", "setAutoCommit", "setTransactionIsolation", "setReadOnly", "beginRequest");

    private HandlerConnection() {}

    static Connection guard(Connection connection) {
        return (Connection) Proxy.newProxyInstance(
                HandlerConnection.class.getClassLoader(),
                new Class<?>[] {Connection.class},
                (proxy, method, arguments) -> {
                    String name = method.getName();
                    boolean endsTransaction = REFUSED.contains(name) || (name.equals("rollback") && arguments == null);
                    if (endsTransaction) {
                        throw new SQLException(
                                "a transactional handler must not call " + name
                                        + ": the library commits when the handler returns, and rolls back when it"
                                        + " throws",
                                "25000");
                    }
                    try {
                        return method.invoke(connection, arguments);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                });
    }
}
