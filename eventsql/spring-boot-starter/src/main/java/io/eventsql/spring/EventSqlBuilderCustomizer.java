package io.eventsql.spring;

import io.eventsql.EventSql;
import io.eventsql.EventSqlBuilder;

/** Customizes the builder of {@link EventSql}, after properties and beans have been applied. Beans are called in their order. */
@FunctionalInterface
public interface EventSqlBuilderCustomizer {
    void customize(EventSqlBuilder builder);
}
