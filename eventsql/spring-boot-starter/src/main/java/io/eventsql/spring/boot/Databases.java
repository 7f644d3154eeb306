package io.eventsql.spring.boot;

import io.eventsql.EventSql;
import io.eventsql.EventSqlBuilder;
import io.eventsql.spring.internal.DataSourceProxies;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
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
 * @param names their names, in the same order; empty for data sources of the application
 * @param outboxes other databases with an outbox
 * @param replicas data sources of replicas, by those of their shards
 * @param preferredShard the shard that gets the events without a key, or {@code null}
 */
record Databases(
        List<DataSource> shards,
        List<String> names,
        List<DataSource> outboxes,
        Map<DataSource, DataSource> replicas,
        @Nullable DataSource preferredShard) {
    private static final Logger LOG = LoggerFactory.getLogger(Databases.class);

    /**
     * Chooses the shards: the first of these that exist: the pools of the properties, the data sources that are marked, the
     * application's only or primary one. The others have an outbox, the application's unless the properties disable it or
     * it is no PostgreSQL.
     *
     * @throws AmbiguousDataSourceException if there are several data sources and none is marked or primary
     */
    static Databases choose(
            EventSqlProperties properties,
            @Nullable ShardPools pools,
            ObjectProvider<DataSource> application,
            ObjectProvider<DataSource> marked) {
        List<DataSource> named =
                marked.orderedStream().map(DataSourceProxies::unwrap).toList();
        List<DataSource> chosen = pools == null ? named : pools.dataSources();
        @Nullable DataSource preferred = preferredShard(properties.preferredShard(), pools);
        if (chosen.isEmpty()) {
            return new Databases(
                    List.of(DataSourceProxies.unwrap(only(application))), List.of(), List.of(), Map.of(), preferred);
        }
        Set<DataSource> outboxes = new LinkedHashSet<>(named);
        @Nullable DataSource own = application.getIfUnique();
        if (own != null && properties.outbox().applicationDataSource() && isPostgreSql(own)) {
            outboxes.add(DataSourceProxies.unwrap(own));
        }
        chosen.forEach(outboxes::remove);
        List<String> names = pools == null ? List.of() : pools.names();
        Map<DataSource, DataSource> replicas = pools == null ? Map.of() : pools.replicas();
        return new Databases(chosen, names, List.copyOf(outboxes), replicas, preferred);
    }

    /** Returns a builder over the shards. */
    EventSqlBuilder builder() {
        if (names.isEmpty()) {
            return EventSql.builder(shards);
        }
        Map<String, DataSource> named = new LinkedHashMap<>();
        for (int i = 0; i < shards.size(); i++) {
            named.put(names.get(i), shards.get(i));
        }
        return EventSql.builder(named);
    }

    /** An unavailable database counts as PostgreSQL: EventSQL uses it as soon as it is available. */
    private static boolean isPostgreSql(DataSource dataSource) {
        try (Connection connection = dataSource.getConnection()) {
            String product = connection.getMetaData().getDatabaseProductName();
            if (!"PostgreSQL".equals(product)) {
                LOG.info(
                        "The application's database is {}, not PostgreSQL; events cannot be published in its transactions",
                        product);
                return false;
            }
            return true;
        } catch (SQLException e) {
            LOG.debug("The application's database is unavailable", e);
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
                    "eventsql.preferred-shard", name, "No shard of that name is configured in eventsql.shards.");
        }
        return shard;
    }
}
