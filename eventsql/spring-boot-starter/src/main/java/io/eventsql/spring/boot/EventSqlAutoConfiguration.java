package io.eventsql.spring.boot;

import io.eventsql.BufferState;
import io.eventsql.ConsumerListener;
import io.eventsql.EventPublisher;
import io.eventsql.EventSql;
import io.eventsql.EventSqlBuilder;
import io.eventsql.Outbox;
import io.eventsql.PublishListener;
import io.eventsql.StreamSpec;
import io.eventsql.spring.EventSqlBuilderCustomizer;
import io.eventsql.spring.EventSqlDataSource;
import io.eventsql.spring.internal.ShardNamesAware;
import io.eventsql.spring.internal.ShutdownBudget;
import java.util.List;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.AnyNestedCondition;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.sql.init.dependency.DependsOnDatabaseInitialization;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Import;

/**
 * EventSQL over the databases of {@code eventsql.shards}, or else over the application's {@link DataSource}. Spring closes
 * it before its data sources.
 */
@AutoConfiguration(after = DataSourceAutoConfiguration.class)
@ConditionalOnBooleanProperty(name = "eventsql.enabled", matchIfMissing = true)
@Import(SharedConfigurations.Properties.class)
public final class EventSqlAutoConfiguration {

    @Bean
    @ConditionalOnMissingBean
    @Conditional(OnShardsCondition.class)
    ShardPools eventSqlShardPools(EventSqlProperties properties) {
        return new ShardPools(properties.shards());
    }

    /** Waits for Flyway and Liquibase, which may prepare the schema. */
    @Bean
    @ConditionalOnMissingBean
    @Conditional(OnDatabaseCondition.class)
    @DependsOnDatabaseInitialization
    EventSql eventSql(
            EventSqlProperties properties,
            ObjectProvider<ShardPools> pools,
            ObjectProvider<DataSource> applicationDataSources,
            @EventSqlDataSource ObjectProvider<DataSource> markedDataSources,
            ObjectProvider<ConsumerListener> listeners,
            ObjectProvider<PublishListener> publishListeners,
            ObjectProvider<EventSqlBuilderCustomizer> customizers) {
        Databases databases =
                Databases.choose(properties, pools.getIfAvailable(), applicationDataSources, markedDataSources);
        EventSqlBuilder builder = databases
                .builder()
                .settings(properties.settings())
                .outbox(databases.outboxes().toArray(DataSource[]::new));
        if (databases.preferredShard() != null) {
            builder.preferredShard(databases.preferredShard());
        }
        databases.replicas().forEach(builder::replica);
        List<ConsumerListener> consumerCallbacks = listeners.orderedStream().toList();
        List<PublishListener> publishCallbacks =
                publishListeners.orderedStream().toList();
        consumerCallbacks.forEach(builder::listener);
        publishCallbacks.forEach(builder::publishListener);
        customizers.orderedStream().forEach(customizer -> customizer.customize(builder));
        EventSql eventSql = builder.build();
        Stream.concat(consumerCallbacks.stream(), publishCallbacks.stream())
                .filter(ShardNamesAware.class::isInstance)
                .map(ShardNamesAware.class::cast)
                .forEach(callback -> callback.setShardNames(number -> eventSql.buffers().stream()
                        .filter(buffer -> buffer.shard() == number)
                        .map(BufferState::name)
                        .findFirst()
                        .orElse("shard" + number)));
        return eventSql;
    }

    @Bean
    @ConditionalOnMissingBean
    @ConditionalOnBean(EventSql.class)
    EventPublisher eventSqlPublisher(EventSql eventSql) {
        return eventSql.publisher();
    }

    @Bean
    @ConditionalOnMissingBean
    @ConditionalOnBean(EventSql.class)
    Outbox eventSqlOutbox(EventSql eventSql) {
        return eventSql.outbox();
    }

    /** Static: it is created before the {@link EventSql} it closes. */
    @Bean
    static EventSqlShutdown eventSqlShutdown(ObjectProvider<ShutdownBudget> budget) {
        return new EventSqlShutdown(budget);
    }

    /** Static: it is created before the {@link EventSql} it processes. */
    @Bean
    static DeclaredStreams eventSqlDeclaredStreams(
            ObjectProvider<EventSqlProperties> properties, ObjectProvider<StreamSpec> beans) {
        return new DeclaredStreams(properties, beans);
    }

    /** Matches if there is a database. */
    static final class OnDatabaseCondition extends AnyNestedCondition {
        OnDatabaseCondition() {
            super(ConfigurationPhase.REGISTER_BEAN);
        }

        @ConditionalOnBean(ShardPools.class)
        static final class OnShards {}

        @ConditionalOnBean(DataSource.class)
        static final class OnDataSource {}
    }
}
