package io.eventsql.spring;

import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.jdbc.datasource.ConnectionHolder;
import org.springframework.jdbc.datasource.JdbcTransactionObjectSupport;
import org.springframework.transaction.ConfigurableTransactionManager;
import org.springframework.transaction.TransactionExecution;
import org.springframework.transaction.TransactionExecutionListener;
import org.springframework.transaction.support.DefaultTransactionStatus;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * Knows the transactions of each thread from their begin to the moment they are committed or rolled back, for {@link
 * EventSqlTemplate}. As a bean it watches all transaction managers that are beans. Thread-safe.
 *
 * <p>Spring's {@link TransactionSynchronizationManager} alone does not tell: a transaction counts as active until the
 * callbacks behind its commit have run (an event written then would be lost or committed by accident), and a connection is
 * bound to the thread in the same way when it only accompanies the transaction of another resource.
 */
public final class OpenTransactions implements BeanPostProcessor {
    /** Of all managers that are watched; absent in a thread without transactions. */
    private static final ThreadLocal<@Nullable Deque<Begun>> BEGUN = new ThreadLocal<>();

    private final TransactionExecutionListener listener = new Listener();

    /** Watches a transaction manager that is a bean. */
    @Override
    public Object postProcessBeforeInitialization(Object bean, String beanName) {
        if (bean instanceof ConfigurableTransactionManager manager) {
            watch(manager);
        }
        return bean;
    }

    /** Watches a transaction manager from now on; not necessary for beans. */
    public void watch(ConfigurableTransactionManager manager) {
        manager.addListener(listener);
    }

    /** The transaction whose connection this is, or {@code null} if none that is watched began with it. */
    @Nullable
    Begun of(ConnectionHolder connection) {
        for (Begun transaction : ofThread()) {
            if (connection.equals(transaction.connection)) {
                return transaction;
            }
        }
        return null;
    }

    /** The transaction of this thread that began last and whose callbacks have not all run, if it is watched. */
    @Nullable
    Begun latest() {
        return ofThread().peek();
    }

    private static Deque<Begun> ofThread() {
        Deque<Begun> mine = BEGUN.get();
        return mine == null ? new ArrayDeque<>(0) : mine;
    }

    /** A transaction that was begun, of any resource. Of one thread. */
    static final class Begun {
        private final TransactionExecution transaction;
        private final @Nullable ConnectionHolder connection;
        private boolean ending;

        private Begun(DefaultTransactionStatus transaction) {
            this.transaction = transaction;
            this.connection = transaction.getTransaction() instanceof JdbcTransactionObjectSupport jdbc
                            && jdbc.hasConnectionHolder()
                    ? jdbc.getConnectionHolder()
                    : null;
        }

        /** Whether what is written now is part of it: it is not being committed or rolled back yet. */
        boolean isOpen() {
            return !ending;
        }

        boolean isReadOnly() {
            return transaction.isReadOnly();
        }
    }

    private static final class Listener implements TransactionExecutionListener {

        @Override
        public void afterBegin(TransactionExecution transaction, @Nullable Throwable beginFailure) {
            // A reactive transaction belongs to no thread.
            if (beginFailure == null && transaction instanceof DefaultTransactionStatus status) {
                Deque<Begun> mine = ofThread();
                mine.push(new Begun(status));
                BEGUN.set(mine);
            }
        }

        @Override
        public void beforeCommit(TransactionExecution transaction) {
            end(transaction);
        }

        @Override
        public void beforeRollback(TransactionExecution transaction) {
            end(transaction);
        }

        @Override
        public void afterCommit(TransactionExecution transaction, @Nullable Throwable commitFailure) {
            forget(transaction);
        }

        @Override
        public void afterRollback(TransactionExecution transaction, @Nullable Throwable rollbackFailure) {
            forget(transaction);
        }

        private void end(TransactionExecution transaction) {
            for (Begun candidate : ofThread()) {
                if (candidate.transaction.equals(transaction)) {
                    candidate.ending = true;
                }
            }
        }

        private void forget(TransactionExecution transaction) {
            Deque<Begun> mine = ofThread();
            mine.removeIf(candidate -> candidate.transaction.equals(transaction));
            if (mine.isEmpty()) {
                BEGUN.remove();
            }
        }
    }
}
