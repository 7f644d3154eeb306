package io.eventsql.spring.listener;

import io.eventsql.ShardInfo;
import io.eventsql.StoredEvent;
import io.eventsql.TransactionBoundary;
import io.eventsql.spring.TransactionProxies;
import io.eventsql.spring.listener.InvalidListenerException.ListenerName;
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
 * The transactions of listeners that are transactional: those of the application's transaction managers, one for each
 * shard, so that everything the method calls takes part in them. Thread-safe.
 */
final class ManagedTransactions implements TransactionBoundary {
    private static final TransactionDefinition NEW = definition(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
    private static final TransactionDefinition CURRENT = definition(TransactionDefinition.PROPAGATION_MANDATORY);

    private final List<Manager> managers;
    private final Map<Integer, Manager> byShard = new ConcurrentHashMap<>();

    /** A transaction manager with the data source as it knows it, and as the library does. */
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
     * With the named transaction managers, or the application's only or primary one.
     *
     * @param shards those that have answered; others are looked at when they have events
     * @throws InvalidListenerException if they do not serve the shards
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
            throw new InvalidListenerException(
                    name,
                    "is transactional, but the application has not exactly one transaction manager, nor a primary one",
                    "Name it: transactionManager = \"…\".");
        }
        return only;
    }

    private static PlatformTransactionManager namedManager(ListenerName name, BeanFactory beans, String manager) {
        try {
            return beans.getBean(manager, PlatformTransactionManager.class);
        } catch (NoSuchBeanDefinitionException e) {
            throw new InvalidListenerException(
                    name,
                    "names a transaction manager that does not exist: '" + manager + "'",
                    "Give it the name of a bean.",
                    e);
        }
    }

    /** JDBC's, JPA's and Hibernate's managers say their data source in the same way. */
    private static Manager manager(ListenerName name, String bean, PlatformTransactionManager manager) {
        @Nullable Object proxied = AopProxyUtils.getSingletonTarget(manager);
        BeanWrapper properties = PropertyAccessorFactory.forBeanPropertyAccess(proxied == null ? manager : proxied);
        @Nullable
        Object dataSource =
                properties.isReadableProperty("dataSource") ? properties.getPropertyValue("dataSource") : null;
        if (dataSource instanceof DataSource known) {
            return new Manager(describe(bean, manager), manager, known, TransactionProxies.behind(known));
        }
        throw new InvalidListenerException(
                name,
                "is transactional, but " + describe(bean, manager) + " has no DataSource",
                "Name one of JDBC or JPA: transactionManager = \"…\".");
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
                throw new InvalidListenerException(
                        name,
                        problem,
                        shards.size() == 1
                                ? "Name the transaction manager of EventSQL's DataSource (transactionManager = \"…\"), or"
                                        + " let EventSQL use the DataSource that the listener writes to."
                                : "The stream lies on " + shards.size()
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
            if (transaction.isRollbackOnly()) { // a commit would roll back, and say nothing
                throw new UnexpectedRollbackException("the transaction was marked to be rolled back");
            }
        } catch (Throwable e) {
            rollback(manager, transaction, e);
            throw e;
        }
        manager.transactions().commit(transaction);
    }

    /** What the manager has bound: asked of {@code DataSourceUtils}, a connection would come that only goes along. */
    private static Connection connection(Manager manager) {
        if (TransactionSynchronizationManager.getResource(manager.bound()) instanceof ConnectionHolder holder) {
            return holder.getConnection();
        }
        throw new IllegalTransactionStateException(manager.name() + " does not show the connection of its transaction"
                + " (JpaDialect without access to JDBC)");
    }

    private static void rollback(Manager manager, TransactionStatus transaction, Throwable failure) {
        try {
            if (!transaction.isCompleted()) {
                manager.transactions().rollback(transaction);
            }
        } catch (RuntimeException | Error e) {
            failure.addSuppressed(e); // the first one says why
        }
    }

    /** What is called inside the transaction. */
    interface Call {
        void run() throws Exception;
    }

    /**
     * Takes part in the transaction of the event's shard, as a method with {@code @Transactional} does: what it left for
     * the commit, such as changed entities, is written now, before the offset; and where something inside has marked the
     * transaction to be rolled back, this says so.
     */
    void joined(StoredEvent event, Call call) throws Exception {
        Manager manager = byShard.get(event.shard());
        if (manager == null) {
            throw new IllegalTransactionStateException("no transaction was begun for " + event.position());
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
