package io.eventsql.spring;

import io.eventsql.Outbox;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.Map;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.datasource.ConnectionHolder;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * Finds the current thread's transaction, and whether the outbox can be written in it. Thread-safe.
 *
 * <p>It can when a connection is bound to the thread whose data source is one of the outbox's, or a proxy before or behind
 * it: JDBC's and JPA's transaction managers bind it when they begin.
 */
final class CurrentTransaction {
    private final Outbox outbox;
    private final OpenTransactions transactions;

    CurrentTransaction(Outbox outbox, OpenTransactions transactions) {
        this.outbox = outbox;
        this.transactions = transactions;
    }

    /** What {@link #find()} finds. */
    sealed interface Found {
        /** There is no transaction, or it is over and only its callbacks run. */
        record None() implements Found {}

        /** One in which the outbox can be written, on the connection bound for {@code key}. */
        record Joinable(DataSource key) implements Found {}

        /** One in which it cannot, and what to do. */
        record NotJoinable(String reason) implements Found {}
    }

    /** The current transaction. Of several that can be joined, that of a shard is preferred. */
    Found find() {
        Map<Object, Object> bound = TransactionSynchronizationManager.getResourceMap();
        if (!bound.isEmpty()) {
            for (DataSource own : outbox.dataSources()) {
                DataSource target = target(own);
                for (Map.Entry<Object, Object> resource : bound.entrySet()) {
                    if (resource.getKey() instanceof DataSource key
                            && resource.getValue() instanceof ConnectionHolder connection
                            && target(key).equals(target)) {
                        Found found = found(key, connection);
                        if (!(found instanceof Found.None)) {
                            return found;
                        }
                    }
                }
            }
        }
        OpenTransactions.@Nullable Begun latest = transactions.latest();
        boolean over = latest != null && !latest.isOpen();
        if (over || !TransactionSynchronizationManager.isActualTransactionActive()) {
            return new Found.None();
        }
        return new Found.NotJoinable(
                "belongs to none of EventSQL's databases: nothing can be published in it so that both are committed or"
                        + " neither. Use the transaction manager of EventSQL's DataSource, give this one's database an outbox"
                        + " (an EventSqlBuilderCustomizer bean that calls builder.outbox), or publish at once with"
                        + " template.outsideTransaction()");
    }

    private Found found(DataSource key, ConnectionHolder connection) {
        OpenTransactions.@Nullable Begun transaction = transactions.of(connection);
        if (transaction != null) {
            if (!transaction.isOpen()) {
                return new Found.None();
            }
            return joinable(key, transaction.isReadOnly());
        }
        // A manager that is no bean is not watched: what Spring knows must do.
        if (transactions.latest() == null
                && TransactionSynchronizationManager.isActualTransactionActive()
                && !isAutoCommit(connection)) {
            return joinable(key, TransactionSynchronizationManager.isCurrentTransactionReadOnly());
        }
        return new Found.None();
    }

    private static Found joinable(DataSource key, boolean readOnly) {
        if (readOnly) {
            return new Found.NotJoinable("is read-only, and publishing writes: begin it without readOnly, or publish at"
                    + " once with template.outsideTransaction()");
        }
        return new Found.Joinable(key);
    }

    private static boolean isAutoCommit(ConnectionHolder holder) {
        try {
            return holder.getConnection().getAutoCommit();
        } catch (SQLException e) {
            throw new IllegalStateException("The transaction's connection does not say whether it is in one", e);
        }
    }

    /** Writes on the connection of a transaction that was found, and tells the relay of its commit. */
    void write(Found.Joinable transaction, Consumer<Connection> writing) {
        Connection connection = DataSourceUtils.getConnection(transaction.key());
        try {
            writing.accept(connection);
        } finally {
            DataSourceUtils.releaseConnection(connection, transaction.key());
        }
        if (TransactionSynchronizationManager.isSynchronizationActive()) {
            TransactionSynchronizationManager.registerSynchronization(new CommitSignal(outbox));
        }
    }

    /** What is behind all of Spring's proxies. */
    private static DataSource target(DataSource dataSource) {
        DataSource target = dataSource;
        while (target instanceof DelegatingDataSource proxy && proxy.getTargetDataSource() != null) {
            target = proxy.getTargetDataSource();
        }
        return target;
    }

    /** Has the relay look at once. Equal ones are kept once a transaction. */
    private record CommitSignal(Outbox outbox) implements TransactionSynchronization {
        @Override
        public void afterCommit() {
            outbox.committed();
        }
    }
}
