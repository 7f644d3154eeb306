package io.eventsql.spring.boot;

import io.eventsql.ConsumerListener;
import io.eventsql.EventPublisher;
import io.eventsql.EventSql;
import io.eventsql.Outbox;
import io.eventsql.PublishListener;
import io.eventsql.StreamSpec;
import io.eventsql.spring.StreamCreator;
import javax.sql.DataSource;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.AnyNestedCondition;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.sql.init.dependency.DependsOnDatabaseInitialization;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;

/**
 * EventSQL over the databases of {@code eventsql.shards}, or else over the application's {@link DataSource}. Spring closes
 * it before its data sources.
 */
@AutoConfiguration(after = DataSourceAutoConfiguration.class)
@ConditionalOnBooleanProperty(name = "eventsql.enabled", matchIfMissing = true)
@EnableConfigurationProperties(EventSqlProperties.class)
public final class EventSqlAutoConfiguration {

    @Bean
    @ConditionalOnMissingBean
    @Conditional(OnShardsCondition.class)
    ShardPools eventSqlShardPools(EventSqlProperties properties) {
        return new ShardPools(properties.shards());
    }

    /** Waits for Flyway and the like, which may prepare the schema. */
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
        EventSql.Builder builder = EventSql.builder(databases.shards())
                .settings(properties.settings())
                .outbox(databases.outboxes().toArray(DataSource[]::new));
        if (databases.preferredShard() != null) {
            builder.preferredShard(databases.preferredShard());
        }
        listeners.orderedStream().forEach(builder::listener);
        publishListeners.orderedStream().forEach(builder::publishListener);
        customizers.orderedStream().forEach(customizer -> customizer.customize(builder));
        return builder.build();
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

    @Bean
    @ConditionalOnMissingBean
    @ConditionalOnBean(EventSql.class)
    StreamCreator eventSqlStreamCreator(
            EventSql eventSql, EventSqlProperties properties, ObjectProvider<StreamSpec> beans) {
        return DeclaredStreams.creator(eventSql, properties, beans);
    }

    /** Static: it is made before the EventSQL it works on. */
    @Bean
    static DeclaredStreams eventSqlDeclaredStreams(
            ObjectProvider<EventSqlProperties> properties, ObjectProvider<StreamSpec> beans) {
        return new DeclaredStreams(properties, beans);
    }

    /** There is a database to use. */
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
