package io.eventsql.spring.boot;

import java.util.List;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.NoUniqueBeanDefinitionException;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;

/**
 * The databases that EventSQL uses in an application.
 *
 * @param shards the shards
 * @param outboxes other databases with an outbox
 * @param preferredShard which of the shards gets the events without a key, or {@code null}
 */
record Databases(
        List<DataSource> shards,
        List<DataSource> outboxes,
        @Nullable DataSource preferredShard) {

    /**
     * The shards are the first of these that exist: the pools of the properties, the data sources that are marked, the
     * application's only or primary one. The last has an outbox in any case, unless the properties say otherwise.
     *
     * @throws AmbiguousDataSourceException if there are several data sources and none is to be preferred
     */
    static Databases choose(
            EventSqlProperties properties,
            @Nullable ShardPools pools,
            ObjectProvider<DataSource> application,
            ObjectProvider<DataSource> marked) {
        List<DataSource> chosen = pools != null
                ? pools.dataSources()
                : marked.orderedStream().map(Databases::behindTransactions).toList();
        @Nullable DataSource preferred = preferredShard(properties.preferredShard(), pools);
        if (chosen.isEmpty()) {
            return new Databases(List.of(behindTransactions(only(application))), List.of(), preferred);
        }
        @Nullable DataSource other = application.getIfUnique();
        if (other == null || !properties.outbox().applicationDataSource()) {
            return new Databases(chosen, List.of(), preferred);
        }
        DataSource outbox = behindTransactions(other);
        return new Databases(chosen, chosen.contains(outbox) ? List.of() : List.of(outbox), preferred);
    }

    private static DataSource only(ObjectProvider<DataSource> application) {
        try {
            return application.getObject();
        } catch (NoUniqueBeanDefinitionException e) {
            throw new AmbiguousDataSourceException(e);
        }
    }

    private static @Nullable DataSource preferredShard(@Nullable String name, @Nullable ShardPools pools) {
        if (name == null) {
            return null;
        }
        @Nullable DataSource shard = pools == null ? null : pools.dataSource(name);
        if (shard == null) {
            throw new InvalidConfigurationPropertyValueException(
                    "eventsql.preferred-shard", name, "It is no name below eventsql.shards.");
        }
        return shard;
    }

    /** The library commits its own transactions: it must not be given the connection of the caller's. */
    private static DataSource behindTransactions(DataSource dataSource) {
        DataSource target = dataSource;
        while ((target instanceof TransactionAwareDataSourceProxy || target instanceof LazyConnectionDataSourceProxy)
                && target instanceof DelegatingDataSource proxy
                && proxy.getTargetDataSource() != null) {
            target = proxy.getTargetDataSource();
        }
        return target;
    }
}
