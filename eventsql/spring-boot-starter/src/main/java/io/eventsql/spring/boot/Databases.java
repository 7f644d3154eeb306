package io.eventsql.spring.boot;

import io.eventsql.spring.TransactionProxies;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.NoUniqueBeanDefinitionException;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

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
    private static final Logger LOG = LoggerFactory.getLogger(Databases.class);

    /**
     * The shards are the first of these that exist: the pools of the properties, the data sources that are marked, the
     * application's only or primary one. Those of the others have an outbox, the last one unless the properties say
     * otherwise or it is no PostgreSQL.
     *
     * @throws AmbiguousDataSourceException if there are several data sources and none is to be preferred
     */
    static Databases choose(
            EventSqlProperties properties,
            @Nullable ShardPools pools,
            ObjectProvider<DataSource> application,
            ObjectProvider<DataSource> marked) {
        List<DataSource> named =
                marked.orderedStream().map(TransactionProxies::behind).toList();
        List<DataSource> chosen = pools == null ? named : pools.dataSources();
        @Nullable DataSource preferred = preferredShard(properties.preferredShard(), pools);
        if (chosen.isEmpty()) {
            return new Databases(List.of(TransactionProxies.behind(only(application))), List.of(), preferred);
        }
        Set<DataSource> outboxes = new LinkedHashSet<>(named);
        @Nullable DataSource own = application.getIfUnique();
        if (own != null && properties.outbox().applicationDataSource() && isPostgreSql(own)) {
            outboxes.add(TransactionProxies.behind(own));
        }
        chosen.forEach(outboxes::remove);
        return new Databases(chosen, List.copyOf(outboxes), preferred);
    }

    /** One that does not answer is left to EventSQL, which uses it as soon as it does. */
    private static boolean isPostgreSql(DataSource dataSource) {
        try (Connection connection = dataSource.getConnection()) {
            String product = connection.getMetaData().getDatabaseProductName();
            if (!"PostgreSQL".equals(product)) {
                LOG.info("The application's database is {}: nothing can be published in its transactions", product);
                return false;
            }
            return true;
        } catch (SQLException e) {
            LOG.debug("The application's database does not answer", e);
            return true;
        }
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
}
