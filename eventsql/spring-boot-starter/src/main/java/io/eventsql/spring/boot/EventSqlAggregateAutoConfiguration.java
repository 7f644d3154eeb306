package io.eventsql.spring.boot;

import io.eventsql.ContinuousAggregateSpec;
import io.eventsql.EventSql;
import io.eventsql.spring.internal.ShutdownBudget;
import io.eventsql.spring.internal.StreamCreator;
import io.eventsql.spring.internal.aggregate.DeclaredAggregates;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;

/** Continuous aggregates that are declared as beans. */
@AutoConfiguration(after = EventSqlAutoConfiguration.class)
@ConditionalOnBean({EventSql.class, ContinuousAggregateSpec.class})
@Import({SharedConfigurations.Properties.class, SharedConfigurations.Streams.class})
public final class EventSqlAggregateAutoConfiguration {
    @Bean
    @ConditionalOnMissingBean
    DeclaredAggregates eventSqlContinuousAggregates(
            EventSql eventSql,
            StreamCreator streams,
            ShutdownBudget shutdown,
            ObjectProvider<ContinuousAggregateSpec> specs) {
        return new DeclaredAggregates(
                eventSql, streams, shutdown, specs.orderedStream().toList());
    }
}
