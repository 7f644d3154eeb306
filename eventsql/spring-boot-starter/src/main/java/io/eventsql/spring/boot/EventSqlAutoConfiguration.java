package io.eventsql.spring.boot;

import io.eventsql.ConsumerListener;
import io.eventsql.EventSql;
import io.eventsql.PublishListener;
import javax.sql.DataSource;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnSingleCandidate;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.context.annotation.Bean;

/** EventSQL over the application's own {@link DataSource}. */
@AutoConfiguration(after = DataSourceAutoConfiguration.class)
public final class EventSqlAutoConfiguration {
    /** Closed by Spring before the data source. */
    @Bean
    @ConditionalOnMissingBean
    @ConditionalOnSingleCandidate(DataSource.class)
    EventSql eventSql(
            DataSource dataSource,
            ObjectProvider<ConsumerListener> consumerListeners,
            ObjectProvider<PublishListener> publishListeners) {
        EventSql.Builder builder = EventSql.builder(dataSource);
        consumerListeners.orderedStream().forEach(builder::listener);
        publishListeners.orderedStream().forEach(builder::publishListener);
        return builder.build();
    }
}
