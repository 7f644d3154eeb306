package io.eventsql.spring;

import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.core.Ordered;
import org.springframework.core.PriorityOrdered;
import org.springframework.jdbc.datasource.ConnectionHolder;
import org.springframework.jdbc.datasource.JdbcTransactionObjectSupport;
import org.springframework.transaction.ConfigurableTransactionManager;
import org.springframework.transaction.TransactionExecution;
import org.springframework.transaction.TransactionExecutionListener;
import org.springframework.transaction.support.DefaultTransactionStatus;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * Tracks the transactions of each thread from their begin until they are committed or rolled back, for {@link
 * EventSqlTemplate}. As a bean it tracks all transaction managers that are beans; Spring Boot configures it. Thread-safe.
 *
 * <p>Spring's {@link TransactionSynchronizationManager} alone is not sufficient: a transaction counts as active until its
 * callbacks after the commit have run (an event written then would be lost or committed by accident), and a connection is
 * bound to the thread in the same way when it only accompanies the transaction of another resource.
 */
public final class TransactionTracker implements BeanPostProcessor {
    /** Those of all tracked managers; absent in a thread without transactions. */
    private static final ThreadLocal<@Nullable Deque<TrackedTransaction>> TRACKED = new ThreadLocal<>();

    private final TransactionExecutionListener listener = new Listener();

    /** Tracks a transaction manager that is a bean. */
    @Override
    public Object postProcessBeforeInitialization(Object bean, String beanName) {
        if (bean instanceof ConfigurableTransactionManager manager) {
            track(manager);
        }
        return bean;
    }

    /** Tracks a transaction manager that is no bean, from now on. */
    public void track(ConfigurableTransactionManager manager) {
        manager.addListener(listener);
    }

    /** Returns the transaction of this connection, or {@code null} if no tracked one began with it. */
    static @Nullable TrackedTransaction transactionOf(ConnectionHolder connection) {
        for (TrackedTransaction transaction : ofThread()) {
            if (connection.equals(transaction.connection)) {
                return transaction;
            }
        }
        return null;
    }

    /** Returns the tracked transaction of this thread that began last and whose callbacks have not all run. */
    static @Nullable TrackedTransaction latestTransaction() {
        return ofThread().peek();
    }

    /** Forgets those that are completed: a manager does not report a commit if a callback before it has failed in some ways. */
    private static Deque<TrackedTransaction> ofThread() {
        Deque<TrackedTransaction> tracked = TRACKED.get();
        if (tracked == null) {
            return new ArrayDeque<>(0);
        }
        tracked.removeIf(candidate -> candidate.transaction.isCompleted());
        return tracked;
    }

    /** How far a transaction has got. */
    enum State {
        /** A statement executed now is part of it. */
        OPEN,
        /** Its commit has begun and may still run code of the application, such as the callbacks of a flush by JPA. */
        COMMITTING,
        /** It is committed, or its rollback has begun; its callbacks may still run. */
        ENDED
    }

    /** A transaction of any resource. Belongs to one thread. */
    static final class TrackedTransaction {
        private final TransactionExecution transaction;
        private final @Nullable ConnectionHolder connection;
        private State state = State.OPEN;

        private TrackedTransaction(DefaultTransactionStatus transaction) {
            this.transaction = transaction;
            this.connection = transaction.getTransaction() instanceof JdbcTransactionObjectSupport jdbc
                            && jdbc.hasConnectionHolder()
                    ? jdbc.getConnectionHolder()
                    : null;
        }

        State state() {
            return state;
        }

        boolean isReadOnly() {
            return transaction.isReadOnly();
        }
    }

    /**
     * Marks a transaction as ended before its other callbacks run. Registered when it begins, because a manager rolls
     * back without calling {@code beforeRollback} if a callback before the commit throws.
     */
    private record EndSignal(TrackedTransaction transaction) implements TransactionSynchronization, PriorityOrdered {
        @Override
        public int getOrder() {
            return Ordered.HIGHEST_PRECEDENCE;
        }

        @Override
        public void afterCommit() {
            transaction.state = State.ENDED;
        }

        @Override
        public void afterCompletion(int status) {
            transaction.state = State.ENDED;
        }
    }

    private static final class Listener implements TransactionExecutionListener {

        @Override
        public void afterBegin(TransactionExecution transaction, @Nullable Throwable beginFailure) {
            // A reactive transaction belongs to no thread.
            if (beginFailure == null && transaction instanceof DefaultTransactionStatus status) {
                TrackedTransaction begun = new TrackedTransaction(status);
                Deque<TrackedTransaction> tracked = ofThread();
                tracked.push(begun);
                TRACKED.set(tracked);
                if (status.isNewSynchronization()) { // otherwise no callback runs between its end and its removal
                    TransactionSynchronizationManager.registerSynchronization(new EndSignal(begun));
                }
            }
        }

        @Override
        public void beforeCommit(TransactionExecution transaction) {
            mark(transaction, State.COMMITTING);
        }

        @Override
        public void beforeRollback(TransactionExecution transaction) {
            mark(transaction, State.ENDED);
        }

        @Override
        public void afterCommit(TransactionExecution transaction, @Nullable Throwable commitFailure) {
            remove(transaction);
        }

        @Override
        public void afterRollback(TransactionExecution transaction, @Nullable Throwable rollbackFailure) {
            remove(transaction);
        }

        private static void mark(TransactionExecution transaction, State state) {
            for (TrackedTransaction candidate : ofThread()) {
                if (candidate.transaction.equals(transaction)) {
                    candidate.state = state;
                }
            }
        }

        private static void remove(TransactionExecution transaction) {
            Deque<TrackedTransaction> tracked = ofThread();
            tracked.removeIf(candidate -> candidate.transaction.equals(transaction));
            if (tracked.isEmpty()) {
                TRACKED.remove();
            }
        }
    }
}
