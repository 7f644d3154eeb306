package io.eventsql.spring;

import static org.awaitility.Awaitility.await;

import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.StoredEvent;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.spring.boot.EventSqlAutoConfiguration;
import io.eventsql.spring.boot.EventSqlTemplateAutoConfiguration;
import io.eventsql.spring.fixture.TestPools;
import io.eventsql.spring.fixture.TestServer;
import java.util.List;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceTransactionManagerAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.JdbcTemplateAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.util.TestPropertyValues;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** One application that most tests of the template share, and new ones for the others. */
abstract class TemplateFixture {
    /** In the order of Spring Boot. */
    static final Class<?>[] AUTO_CONFIGURATIONS = {
        JacksonAutoConfiguration.class,
        DataSourceTransactionManagerAutoConfiguration.class,
        JdbcTemplateAutoConfiguration.class,
        EventSqlAutoConfiguration.class,
        EventSqlTemplateAutoConfiguration.class
    };

    static final TestPools POOLS = new TestPools();
    static final TestPools SHARED_POOLS = new TestPools();
    static final EventsDb EVENTS_DB = TestServer.get();
    static AnnotationConfigApplicationContext shared;

    record Order(String id, int total) {}

    @BeforeAll
    static void startSharedApplication() {
        shared = new AnnotationConfigApplicationContext();
        shared.registerBean(DataSource.class, () -> newDatabase(SHARED_POOLS));
        TestPropertyValues.of(
                        "eventsql.streams.orders.partitions=1",
                        "eventsql.streams.accounts.partitions=1",
                        "eventsql.streams.accounts.key-tracking=versions",
                        "eventsql.create-missing-streams=true")
                .applyTo(shared);
        shared.register(AUTO_CONFIGURATIONS);
        shared.refresh();
    }

    @AfterAll
    static void stopSharedApplication() {
        shared.close();
        SHARED_POOLS.close();
    }

    @AfterEach
    void closePools() {
        POOLS.close();
    }

    static DataSource newDatabase() {
        return newDatabase(POOLS);
    }

    static DataSource newDatabase(TestPools pools) {
        DataSource dataSource = pools.pool(TestServer.newDatabase());
        new JdbcTemplate(dataSource).execute("CREATE TABLE orders (id text PRIMARY KEY)");
        return dataSource;
    }

    static ApplicationContextRunner application() {
        return application(newDatabase());
    }

    static ApplicationContextRunner application(DataSource dataSource) {
        return new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(AUTO_CONFIGURATIONS))
                .withPropertyValues("eventsql.streams.orders.partitions=1")
                .withBean(DataSource.class, () -> dataSource);
    }

    /** Runs a test with the shared application, after the events of earlier tests. */
    static void run(Consumer<App> test) {
        App last = new App(shared, 0);
        await().until(() -> last.eventSql().outbox().backlogs().getFirst().events() == 0);
        last.jdbc().update("DELETE FROM orders");
        test.accept(new App(shared, last.stored().size()));
    }

    /**
     * The parts of an application that tests use.
     *
     * @param from the offset of the test's first event
     */
    record App(ApplicationContext context, long from) {
        App(ApplicationContext context) {
            this(context, 0);
        }

        EventSqlTemplate events() {
            return context.getBean(EventSqlTemplate.class);
        }

        EventSql eventSql() {
            return context.getBean(EventSql.class);
        }

        JdbcTemplate jdbc() {
            return context.getBean(JdbcTemplate.class);
        }

        TransactionTemplate transaction() {
            return new TransactionTemplate(context.getBean(PlatformTransactionManager.class));
        }

        TransactionTemplate transaction(int propagation) {
            TransactionTemplate template = transaction();
            template.setPropagationBehavior(propagation);
            return template;
        }

        List<String> orders() {
            return jdbc().queryForList("SELECT id FROM orders ORDER BY id", String.class);
        }

        List<StoredEvent> stored() {
            return eventSql().read(new EventPosition("orders", 0, 0, from), 1_000);
        }

        List<String> keys() {
            return stored().stream().map(StoredEvent::key).toList();
        }

        /** Returns the keys once the outbox is empty. */
        List<String> keysInTheEnd() {
            await().until(() -> eventSql().outbox().backlogs().getFirst().events() == 0);
            return keys();
        }
    }
}
