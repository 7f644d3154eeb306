package io.eventsql.spring.test;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.EventSql;
import io.eventsql.spring.EventSqlTemplate;
import io.eventsql.spring.boot.EventSqlAutoConfiguration;
import io.eventsql.spring.boot.EventSqlTemplateAutoConfiguration;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.jdbc.test.autoconfigure.JdbcTest;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.test.context.ContextConfiguration;

/** A slice has the embedded PostgreSQL instead of H2. */
class JdbcSliceIT {
    @Configuration(proxyBeanMethods = false)
    static class Slice {}

    @Nested
    @JdbcTest
    @EmbeddedEventSql
    @ContextConfiguration(classes = Slice.class)
    class WithDataSource {
        @Test
        void dataSource_isTheEmbeddedPostgreSql(
                @Autowired JdbcTemplate jdbc, @Autowired ObjectProvider<EventSql> eventSql) {
            assertThat(jdbc.queryForObject("SELECT version()", String.class)).startsWith("PostgreSQL");
            assertThat(jdbc.queryForObject("SELECT current_database()", String.class))
                    .endsWith("jdbcsliceit");
            assertThat(eventSql.stream()).isEmpty();
        }
    }

    @Nested
    @JdbcTest
    @EmbeddedEventSql
    @ImportAutoConfiguration({EventSqlAutoConfiguration.class, EventSqlTemplateAutoConfiguration.class})
    @ContextConfiguration(classes = Slice.class)
    class WithEventSql {
        @Test
        void template_joinsTheTestsTransaction(@Autowired EventSqlTemplate events, @Autowired EventSql eventSql) {
            assertThat(events.publish("orders", "4711", "placed")).isEmpty();
            assertThat(events.outsideTransaction().publish("orders", "4712", "placed"))
                    .isPresent();
            assertThat(eventSql.streams()).hasSize(1);
        }
    }
}
