package io.eventsql.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.StoredEvent;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.spring.boot.EventSqlAutoConfiguration;
import io.eventsql.spring.boot.EventSqlTemplateAutoConfiguration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceTransactionManagerAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.JdbcTemplateAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationContext;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** What the template does in a transaction of {@code DataSourceTransactionManager}, and without one. */
class EventSqlTemplateIT {
    private static final AtomicInteger DATABASES = new AtomicInteger();
    private static EventsDb eventsDb;

    private DataSource dataSource;

    record Order(String id, int total) {}

    @BeforeAll
    static void startServer() {
        eventsDb = EventsDb.start();
    }

    @AfterAll
    static void stopServer() {
        eventsDb.close();
    }

    @BeforeEach
    void createDatabase() {
        dataSource = eventsDb.createDatabase("template_" + DATABASES.incrementAndGet());
        new JdbcTemplate(dataSource).execute("CREATE TABLE orders (id text PRIMARY KEY)");
    }

    private ApplicationContextRunner application() {
        return new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        DataSourceAutoConfiguration.class,
                        DataSourceTransactionManagerAutoConfiguration.class,
                        JdbcTemplateAutoConfiguration.class,
                        JacksonAutoConfiguration.class,
                        EventSqlAutoConfiguration.class,
                        EventSqlTemplateAutoConfiguration.class))
                .withPropertyValues("eventsql.streams.orders.partitions=1")
                .withBean(DataSource.class, () -> dataSource);
    }

    private void run(Consumer<App> test) {
        application().run(context -> test.accept(new App(context)));
    }

    /** What the tests use of an application. */
    record App(ApplicationContext context) {
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
            return eventSql().read(new EventPosition("orders", 0, 0, 0), 1_000);
        }

        List<String> keys() {
            return stored().stream().map(StoredEvent::key).toList();
        }

        /** The keys once an event published last, directly, is there and the outbox is empty. */
        List<String> keysInTheEnd() {
            await().until(() -> eventSql().outbox().backlogs().getFirst().events() == 0);
            return keys();
        }
    }

    @Test
    void publish_withoutTransaction_isStoredAtOnceAsJson() {
        run(app -> {
            app.events().publish("orders", "4711", new Order("4711", 3));

            StoredEvent stored = app.stored().getFirst();
            assertThat(stored.key()).isEqualTo("4711");
            assertThat(stored.text()).isEqualTo("{\"id\":\"4711\",\"total\":3}");
            assertThat(stored.headers()).containsExactly(java.util.Map.entry("content-type", "application/json"));
        });
    }

    @Test
    void publish_committed_isStoredOnce() {
        run(app -> {
            app.transaction().executeWithoutResult(status -> {
                app.jdbc().update("INSERT INTO orders VALUES ('1')");
                app.events().publish("orders", "1", new Order("1", 1));
                app.events().publish("orders", "2", new Order("2", 1));
                assertThat(app.keys()).isEmpty();
            });

            await().until(() -> app.keys().size() >= 2);
            assertThat(app.keysInTheEnd()).containsExactly("1", "2");
            assertThat(app.orders()).containsExactly("1");
        });
    }

    @Test
    void publish_rolledBack_isNeverStored() {
        run(app -> {
            app.transaction().executeWithoutResult(status -> {
                app.jdbc().update("INSERT INTO orders VALUES ('1')");
                app.events().publish("orders", "1", new Order("1", 1));
                status.setRollbackOnly();
            });

            assertThat(app.keysInTheEnd()).isEmpty();
            assertThat(app.orders()).isEmpty();
        });
    }
}
