package io.eventsql.spring.internal.listener;

import io.eventsql.ShardInfo;
import io.eventsql.StoredEvent;
import io.eventsql.TransactionBoundary;
import io.eventsql.spring.internal.DataSourceProxies;
import java.sql.Connection;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.framework.AopProxyUtils;
import org.springframework.beans.BeanWrapper;
import org.springframework.beans.PropertyAccessorFactory;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.NoSuchBeanDefinitionException;
import org.springframework.jdbc.datasource.ConnectionHolder;
import org.springframework.transaction.IllegalTransactionStateException;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.TransactionStatus;
import org.springframework.transaction.UnexpectedRollbackException;
import org.springframework.transaction.support.DefaultTransactionDefinition;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * Transactions of a transactional listener by the application's transaction managers, one for each shard, so that
 * everything the method calls takes part in them. Thread-safe.
 */
final class ManagedTransactions implements TransactionBoundary {
    private static final TransactionDefinition NEW = definition(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
    private static final TransactionDefinition CURRENT = definition(TransactionDefinition.PROPAGATION_MANDATORY);

    private final List<Manager> managers;
    private final Map<Integer, Manager> byShard = new ConcurrentHashMap<>();

    /** A transaction manager with its data source, and with the unwrapped one, which the library uses. */
    private record Manager(String name, PlatformTransactionManager transactions, DataSource bound, DataSource target) {}

    private ManagedTransactions(List<Manager> managers) {
        this.managers = managers;
    }

    private static TransactionDefinition definition(int propagation) {
        DefaultTransactionDefinition definition = new DefaultTransactionDefinition(propagation);
        definition.setName("EventSQL listener");
        return definition;
    }

    /**
     * Returns transactions of the named transaction managers, or of the application's only or primary one.
     *
     * @param shards the available ones; others are checked when they have events
     * @throws io.eventsql.spring.InvalidListenerException if a shard has no transaction manager
     */
    static ManagedTransactions of(ListenerName name, BeanFactory beans, List<String> names, List<ShardInfo> shards) {
        List<Manager> managers = new ArrayList<>();
        if (names.isEmpty()) {
            managers.add(manager(name, "", onlyManager(name, beans)));
        }
        for (String manager : names) {
            managers.add(manager(name, manager, namedManager(name, beans, manager)));
        }
        ManagedTransactions transactions = new ManagedTransactions(managers);
        transactions.requireAll(name, shards);
        return transactions;
    }

    private static PlatformTransactionManager onlyManager(ListenerName name, BeanFactory beans) {
        PlatformTransactionManager only =
                beans.getBeanProvider(PlatformTransactionManager.class).getIfUnique();
        if (only == null) {
            throw name.invalid(
                    "is transactional, but the application has several transaction managers or none, and no primary one",
                    "Set transactionManager = \"…\".");
        }
        return only;
    }

    private static PlatformTransactionManager namedManager(ListenerName name, BeanFactory beans, String manager) {
        try {
            return beans.getBean(manager, PlatformTransactionManager.class);
        } catch (NoSuchBeanDefinitionException e) {
            throw name.invalid(
                    "names a transaction manager that does not exist: '" + manager + "'", "Use the name of a bean.", e);
        }
    }

    /** The managers of JDBC, JPA and Hibernate have the same property for their data source. */
    private static Manager manager(ListenerName name, String bean, PlatformTransactionManager manager) {
        @Nullable Object proxied = AopProxyUtils.getSingletonTarget(manager);
        BeanWrapper properties = PropertyAccessorFactory.forBeanPropertyAccess(proxied == null ? manager : proxied);
        @Nullable
        Object dataSource =
                properties.isReadableProperty("dataSource") ? properties.getPropertyValue("dataSource") : null;
        if (dataSource instanceof DataSource known) {
            return new Manager(describe(bean, manager), manager, known, DataSourceProxies.unwrap(known));
        }
        throw name.invalid(
                "is transactional, but " + describe(bean, manager) + " has no DataSource",
                "Name a transaction manager of JDBC or JPA: transactionManager = \"…\".");
    }

    private static String describe(String bean, PlatformTransactionManager manager) {
        String type = manager.getClass().getSimpleName();
        return bean.isEmpty() ? "the transaction manager (" + type + ")" : "'" + bean + "' (" + type + ")";
    }

    private void requireAll(ListenerName name, List<ShardInfo> shards) {
        for (ShardInfo shard : shards) {
            if (find(shard).isEmpty()) {
                String problem = "is transactional, but " + described() + " is not that of "
                        + (shards.size() == 1 ? "the stream's database" : "shard '" + shard.name() + "'");
                throw name.invalid(
                        problem,
                        shards.size() == 1
                                ? "Name the transaction manager of EventSQL's DataSource (transactionManager = \"…\"), or"
                                        + " let EventSQL use the DataSource that the listener writes to."
                                : "The stream is stored on " + shards.size()
                                        + " shards, and a transaction manager serves one"
                                        + " of them: make the shards DataSource beans (@EventSqlDataSource), and name a"
                                        + " transaction manager for each: transactionManager = {\"…\", \"…\"}.");
            }
        }
    }

    private String described() {
        return managers.size() == 1
                ? "the DataSource of " + managers.getFirst().name()
                : "none of the DataSources of "
                        + managers.stream().map(Manager::name).toList();
    }

    private Optional<Manager> find(ShardInfo shard) {
        return managers.stream()
                .filter(manager -> manager.target().equals(shard.dataSource()))
                .findFirst();
    }

    @Override
    public void inTransaction(ShardInfo shard, Work work) throws Exception {
        Manager manager = byShard.computeIfAbsent(
                shard.number(),
                number -> find(shard)
                        .orElseThrow(() -> new IllegalTransactionStateException(
                                described() + " is not that of shard '" + shard.name() + "'")));
        TransactionStatus transaction = manager.transactions().getTransaction(NEW);
        try {
            work.run(connection(manager));
            if (transaction.isRollbackOnly()) { // a commit would roll back silently
                throw new UnexpectedRollbackException("the transaction was marked to be rolled back");
            }
        } catch (Throwable e) {
            rollback(manager, transaction, e);
            throw e;
        }
        manager.transactions().commit(transaction);
    }

    /** Returns the connection bound by the manager; {@code DataSourceUtils} could return one outside of the transaction. */
    private static Connection connection(Manager manager) {
        if (TransactionSynchronizationManager.getResource(manager.bound()) instanceof ConnectionHolder holder) {
            return holder.getConnection();
        }
        throw new IllegalTransactionStateException(manager.name() + " does not expose the connection of its transaction"
                + " (JpaDialect without access to JDBC)");
    }

    private static void rollback(Manager manager, TransactionStatus transaction, Throwable failure) {
        try {
            if (!transaction.isCompleted()) {
                manager.transactions().rollback(transaction);
            }
        } catch (RuntimeException | Error e) {
            failure.addSuppressed(e); // the first failure is the cause
        }
    }

    /** A call inside the transaction. */
    interface Call {
        void run() throws Exception;
    }

    /**
     * Calls within the transaction of the event's shard, as a method with {@code @Transactional} does. Writes deferred to
     * the commit, such as changed entities, are flushed before the offset is written. Throws if the call has marked the
     * transaction as rollback-only.
     */
    void joined(StoredEvent event, Call call) throws Exception {
        Manager manager = byShard.get(event.shard());
        if (manager == null) {
            throw new IllegalTransactionStateException("no transaction was started for " + event.position());
        }
        TransactionStatus joined = manager.transactions().getTransaction(CURRENT);
        try {
            call.run();
            joined.flush();
        } catch (Throwable e) {
            rollback(manager, joined, e);
            throw e;
        }
        manager.transactions().commit(joined);
    }
}
