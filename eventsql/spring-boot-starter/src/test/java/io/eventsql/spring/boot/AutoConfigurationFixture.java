package io.eventsql.spring.boot;

import io.eventsql.eventsdb.EventsDb;
import io.eventsql.spring.EventSqlDataSource;
import io.eventsql.spring.fixture.TestPools;
import io.eventsql.spring.fixture.TestServer;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.core.JdbcTemplate;

/** Applications over new databases. */
abstract class AutoConfigurationFixture {
    static final TestPools POOLS = new TestPools();
    static final EventsDb EVENTS_DB = TestServer.get();

    final ApplicationContextRunner application = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(
                    JacksonAutoConfiguration.class,
                    EventSqlAutoConfiguration.class,
                    EventSqlTemplateAutoConfiguration.class));

    @AfterEach
    void closePools() {
        POOLS.close();
    }

    /** Returns a pool over a new database with the library's empty tables. */
    static DataSource newDatabase() {
        return POOLS.pool(TestServer.newDatabase());
    }

    static DataSource emptyDatabase() {
        return POOLS.pool(TestServer.emptyDatabase());
    }

    /** Returns an application with new databases as shards, named a, b … */
    ApplicationContextRunner withShards(int count) {
        ApplicationContextRunner runner = application;
        for (char name = 'a'; name < 'a' + count; name++) {
            runner = runner.withPropertyValues(
                    "eventsql.shards." + name + ".url=" + TestServer.newUrl(),
                    "eventsql.shards." + name + ".username=" + EVENTS_DB.username(),
                    "eventsql.shards." + name + ".password=" + EVENTS_DB.password(),
                    "eventsql.shards." + name + ".hikari.minimum-idle=1");
        }
        return runner;
    }

    @Configuration(proxyBeanMethods = false)
    static class MarkedNextToTheApplications {
        @Bean
        DataSource application() {
            return newDatabase();
        }

        @Bean(defaultCandidate = false)
        @EventSqlDataSource
        DataSource events() {
            return newDatabase();
        }
    }

    static String commentOnSchema(DataSource dataSource) {
        return new JdbcTemplate(dataSource)
                .queryForObject("SELECT obj_description('eventsql'::regnamespace)", String.class);
    }
}
