package io.eventsql.spring.boot;

import io.eventsql.EventSql;

/** Changes how {@link EventSql} is built, behind everything that properties and beans say. Beans are asked in their order. */
@FunctionalInterface
public interface EventSqlBuilderCustomizer {
    void customize(EventSql.Builder builder);
}
