package io.eventsql.spring.boot;

import io.eventsql.eventsdb.EventsDb;
import io.eventsql.spring.EventSqlDataSource;
import io.eventsql.spring.fixture.TestPools;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.core.JdbcTemplate;

/** Applications over new databases. */
abstract class AutoConfigurationFixture {
    static final AtomicInteger DATABASES = new AtomicInteger();
    static final TestPools POOLS = new TestPools();
    static EventsDb eventsDb;

    final ApplicationContextRunner application = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(
                    JacksonAutoConfiguration.class,
                    EventSqlAutoConfiguration.class,
                    EventSqlTemplateAutoConfiguration.class));

    @BeforeAll
    static void startDatabase() {
        eventsDb = EventsDb.start();
    }

    @AfterAll
    static void stopDatabase() {
        eventsDb.close();
    }

    @AfterEach
    void closePools() {
        POOLS.close();
    }

    static DataSource newDatabase() {
        return POOLS.pool(eventsDb.createDatabase("auto_" + DATABASES.incrementAndGet()));
    }

    /** Returns the URL of a new database. */
    static String newUrl() {
        String name = "auto_" + DATABASES.incrementAndGet();
        eventsDb.createDatabase(name);
        return eventsDb.jdbcUrl(name);
    }

    /** Returns an application with new databases as shards, named a, b … */
    ApplicationContextRunner withShards(int count) {
        ApplicationContextRunner runner = application;
        for (char name = 'a'; name < 'a' + count; name++) {
            runner = runner.withPropertyValues(
                    "eventsql.shards." + name + ".url=" + newUrl(),
                    "eventsql.shards." + name + ".username=" + eventsDb.username(),
                    "eventsql.shards." + name + ".password=" + eventsDb.password(),
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
