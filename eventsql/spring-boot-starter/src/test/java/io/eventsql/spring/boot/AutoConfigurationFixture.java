package io.eventsql.spring.boot;

import io.eventsql.eventsdb.EventsDb;
import io.eventsql.spring.EventSqlDataSource;
import io.eventsql.spring.fixture.TestPools;
import io.eventsql.spring.fixture.TestServer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.core.JdbcTemplate;

/** Applications over databases of the class or of a test. */
abstract class AutoConfigurationFixture {
    static final TestPools POOLS = new TestPools();
    static final EventsDb EVENTS_DB = TestServer.get();

    /** The URLs of the shards of clusters, by how many these are. */
    private static final Map<Integer, List<String>> CLUSTERS = new HashMap<>();

    /** Databases that the tests of the class share, by what they are for. */
    private static final Map<String, DataSource> DATABASES = new HashMap<>();

    final ApplicationContextRunner application = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(
                    JacksonAutoConfiguration.class,
                    EventSqlAutoConfiguration.class,
                    EventSqlTemplateAutoConfiguration.class));

    /** Databases are dropped after their class. */
    @BeforeAll
    static void forgetDatabases() {
        CLUSTERS.clear();
        DATABASES.clear();
    }

    @AfterEach
    void closePools() {
        POOLS.close();
    }

    /** Returns a pool over a new database with the library's empty tables. */
    static DataSource newDatabase() {
        return POOLS.pool(TestServer.newDatabase());
    }

    /** Returns a pool over a database with the library's tables that tests of the class share: the only shard of a cluster. */
    static DataSource sharedDatabase() {
        return shared("shard");
    }

    private static DataSource shared(String name) {
        return POOLS.pool(DATABASES.computeIfAbsent(name, any -> TestServer.newDatabase()));
    }

    static DataSource emptyDatabase() {
        return POOLS.pool(TestServer.emptyDatabase());
    }

    /** Returns an application with shards named a, b …, those of all tests of the class with as many. */
    ApplicationContextRunner withShards(int count) {
        List<String> urls = CLUSTERS.computeIfAbsent(
                count, any -> Stream.generate(TestServer::newUrl).limit(count).toList());
        ApplicationContextRunner runner = application;
        for (int i = 0; i < count; i++) {
            char name = (char) ('a' + i);
            runner = runner.withPropertyValues(
                    "eventsql.shards." + name + ".url=" + urls.get(i),
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
            return shared("outbox");
        }

        @Bean(defaultCandidate = false)
        @EventSqlDataSource
        DataSource events() {
            return sharedDatabase();
        }
    }

    static String commentOnSchema(DataSource dataSource) {
        return new JdbcTemplate(dataSource)
                .queryForObject("SELECT obj_description('eventsql'::regnamespace)", String.class);
    }
}
