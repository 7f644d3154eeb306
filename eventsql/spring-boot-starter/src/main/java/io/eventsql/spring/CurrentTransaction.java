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
 * <p>It can when the thread has a bound connection whose data source is one of the outbox's, or a proxy of one: the
 * transaction managers of JDBC and JPA bind it when they begin.
 */
final class CurrentTransaction {
    private final Outbox outbox;

    CurrentTransaction(Outbox outbox) {
        this.outbox = outbox;
    }

    /** The result of {@link #find()}. */
    sealed interface Found {
        /** There is no transaction, or it has ended and only its callbacks run. */
        record None() implements Found {}

        /** The outbox can be written in the transaction, on the connection bound for {@code key}. */
        record Joinable(DataSource key) implements Found {}

        /** The outbox cannot be written in the transaction: why, and what to do. */
        record NotJoinable(String reason) implements Found {}
    }

    /** Returns the current transaction. Of several that can be joined, that of a shard is preferred. */
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
        TransactionTracker.@Nullable TrackedTransaction latest = TransactionTracker.latestTransaction();
        boolean ended = latest != null && latest.state() == TransactionTracker.State.ENDED;
        if (ended || !TransactionSynchronizationManager.isActualTransactionActive()) {
            return new Found.None();
        }
        return new Found.NotJoinable(
                "belongs to none of EventSQL's databases, so that events cannot be committed with it. Use the transaction"
                        + " manager of EventSQL's DataSource, give this one's database an outbox (an"
                        + " EventSqlBuilderCustomizer bean that calls builder.outbox), or publish at once with"
                        + " template.outsideTransaction()");
    }

    private Found found(DataSource key, ConnectionHolder connection) {
        TransactionTracker.@Nullable TrackedTransaction transaction = TransactionTracker.transactionOf(connection);
        if (transaction != null) {
            return switch (transaction.state()) {
                case OPEN -> joinable(key, transaction.isReadOnly());
                case COMMITTING -> committing();
                case ENDED -> new Found.None();
            };
        }
        // A manager that is no bean may not be tracked: then Spring's own knowledge has to be sufficient.
        if (TransactionTracker.latestTransaction() == null
                && TransactionSynchronizationManager.isActualTransactionActive()
                && !isAutoCommit(connection)) {
            return joinable(key, TransactionSynchronizationManager.isCurrentTransactionReadOnly());
        }
        return new Found.None();
    }

    /** JPA flushes within the commit and calls entities: an event published at once would outlive a failed flush. */
    private static Found committing() {
        return new Found.NotJoinable("is being committed, which is too late to join it. Flush before the commit, or"
                + " publish at once with template.outsideTransaction()");
    }

    private static Found joinable(DataSource key, boolean readOnly) {
        if (readOnly) {
            return new Found.NotJoinable("is read-only, but publishing writes. Begin it without readOnly, or publish at"
                    + " once with template.outsideTransaction()");
        }
        return new Found.Joinable(key);
    }

    private static boolean isAutoCommit(ConnectionHolder holder) {
        try {
            return holder.getConnection().getAutoCommit();
        } catch (SQLException e) {
            throw new IllegalStateException(
                    "The auto-commit mode of the transaction's connection could not be read", e);
        }
    }

    /** Writes on the transaction's connection; its commit wakes the relay. */
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

    /** Returns the data source behind all of Spring's proxies. */
    private static DataSource target(DataSource dataSource) {
        DataSource target = dataSource;
        while (target instanceof DelegatingDataSource proxy && proxy.getTargetDataSource() != null) {
            target = proxy.getTargetDataSource();
        }
        return target;
    }

    /** Wakes the relay. A transaction keeps equal ones once. */
    private record CommitSignal(Outbox outbox) implements TransactionSynchronization {
        @Override
        public void afterCommit() {
            outbox.committed();
        }
    }
}
