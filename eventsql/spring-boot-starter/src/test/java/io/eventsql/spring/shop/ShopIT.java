package io.eventsql.spring.shop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.StoredEvent;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.spring.TransactionNotJoinableException;
import io.eventsql.spring.fixture.TestServer;
import io.eventsql.spring.shop.JpaShop.JpaOrders;
import io.eventsql.spring.shop.Shop.OrderPlaced;
import io.eventsql.spring.shop.Shop.Orders;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jooq.DSLContext;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** Whole applications, as Spring Boot configures them, with transactions of JDBC and JPA. */
class ShopIT {
    private static final String WITHOUT_JPA =
            "spring.autoconfigure.exclude=org.springframework.boot.hibernate.autoconfigure.HibernateJpaAutoConfiguration,"
                    + "org.springframework.boot.data.jpa.autoconfigure.DataJpaRepositoriesAutoConfiguration";
    private static final Map<Class<?>, ConfigurableApplicationContext> SHARED = new HashMap<>();

    /** The offset of the first event of the test. */
    private long from;

    @AfterAll
    static void closeApplications() {
        SHARED.values().forEach(ConfigurableApplicationContext::close);
        SHARED.clear();
    }

    private static ConfigurableApplicationContext start(Class<?> part, String... properties) {
        String url = TestServer.newUrl();
        EventsDb server = TestServer.get();
        JdbcTemplate jdbc = new JdbcTemplate(new DriverManagerDataSource(url, server.username(), server.password()));
        jdbc.execute("CREATE TABLE orders (id text PRIMARY KEY)");
        jdbc.execute("CREATE TABLE notes (id text PRIMARY KEY, content text)");
        List<String> all = new ArrayList<>(List.of(
                "spring.datasource.url=" + url,
                "spring.datasource.username=" + server.username(),
                "spring.datasource.password=" + server.password(),
                "spring.main.banner-mode=off",
                "eventsql.streams.orders.partitions=1"));
        all.addAll(List.of(properties));
        return new SpringApplicationBuilder(Shop.class, part)
                .web(WebApplicationType.NONE)
                .properties(all.toArray(String[]::new))
                .run();
    }

    /** Returns an application that other tests use, too, without the rows and events of these. */
    private ConfigurableApplicationContext shared(Class<?> part, String... properties) {
        ConfigurableApplicationContext context = SHARED.computeIfAbsent(part, key -> start(key, properties));
        from += keysInTheEnd(context).size();
        context.getBean(JdbcTemplate.class).execute("TRUNCATE orders, notes");
        return context;
    }

    private List<String> keys(ConfigurableApplicationContext context) {
        return context.getBean(EventSql.class).read(new EventPosition("orders", 0, 0, from), 100).stream()
                .map(StoredEvent::key)
                .toList();
    }

    private List<String> keysInTheEnd(ConfigurableApplicationContext context) {
        EventSql eventSql = context.getBean(EventSql.class);
        await().until(() -> eventSql.outbox().backlogs().getFirst().events() == 0);
        return keys(context);
    }

    private static List<String> orders(ConfigurableApplicationContext context) {
        return context.getBean(JdbcTemplate.class).queryForList("SELECT id FROM orders ORDER BY id", String.class);
    }

    @Test
    void jdbc_orderAndEvent_areCommittedTogetherOrNotAtAll() {
        ConfigurableApplicationContext context = shared(Shop.class, WITHOUT_JPA);
        Orders orders = context.getBean(Orders.class);

        orders.place(new OrderPlaced("1"));
        assertThatThrownBy(() -> orders.placeTwice(new OrderPlaced("2"))).isInstanceOf(RuntimeException.class);
        orders.place(new OrderPlaced("3"));

        await().until(() -> keys(context).size() >= 2);
        assertThat(keysInTheEnd(context)).containsExactly("1", "3");
        assertThat(orders(context)).containsExactly("1", "3");
    }

    @Test
    void jooq_ofTheApplication_joinsUnchanged() {
        ConfigurableApplicationContext context = shared(Shop.class, WITHOUT_JPA);
        DSLContext dsl = context.getBean(DSLContext.class);
        Orders orders = context.getBean(Orders.class);

        orders.placeWithJooq(dsl, new OrderPlaced("1"));
        dsl.transaction(trx -> {
            orders.placeWithJooq(trx.dsl(), new OrderPlaced("2"));
            assertThatThrownBy(() -> trx.dsl().transaction(nested -> {
                        orders.placeWithJooq(nested.dsl(), new OrderPlaced("3"));
                        throw new IllegalStateException("back to the savepoint");
                    }))
                    .isInstanceOf(IllegalStateException.class);
        });

        await().until(() -> keys(context).size() >= 2);
        assertThat(keysInTheEnd(context)).containsExactly("1", "2");
        assertThat(orders(context)).containsExactly("1", "2");
        assertThat(context.getBeansOfType(DSLContext.class)).hasSize(1);
    }

    @Test
    void jpa_orderAndEvent_areCommittedTogetherOrNotAtAll() {
        ConfigurableApplicationContext context = shared(JpaShop.class);
        placeWithJpa(context);
    }

    /** Lazy connections without auto-commit, as often recommended for Hibernate. */
    @Test
    void jpa_poolWithoutAutoCommit_isTheSame_andClosedAfterEventSql() {
        EventSql eventSql;
        try (ConfigurableApplicationContext context = start(
                JpaShop.class,
                "spring.datasource.hikari.auto-commit=false",
                "spring.jpa.properties.hibernate.connection.provider_disables_autocommit=true")) {
            eventSql = context.getBean(EventSql.class);
            placeWithJpa(context);
        }

        assertThatThrownBy(() -> eventSql.publisher().publish("orders", Event.ofText("late")))
                .isInstanceOf(EventSqlException.class);
    }

    private void placeWithJpa(ConfigurableApplicationContext context) {
        assertThat(context.getBean(PlatformTransactionManager.class).getClass().getSimpleName())
                .isEqualTo("JpaTransactionManager");
        JpaOrders orders = context.getBean(JpaOrders.class);

        orders.place(new OrderPlaced("1"));
        assertThatThrownBy(() -> orders.placeAndFail(new OrderPlaced("2")))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("after the flush");
        assertThatThrownBy(() -> orders.placeReadOnly(new OrderPlaced("3")))
                .isInstanceOf(TransactionNotJoinableException.class);
        new TransactionTemplate(context.getBean(PlatformTransactionManager.class)).executeWithoutResult(status -> {
            orders.place(new OrderPlaced("4"));
            orders.placeAlone(new OrderPlaced("5"));
            status.setRollbackOnly();
        });

        await().until(() -> keys(context).size() >= 2);
        assertThat(keysInTheEnd(context)).containsExactly("1", "5");
        assertThat(orders(context)).containsExactly("1", "5");
    }

    @Test
    void jpa_transactionalEventListeners_publishInAndAfterTheTransaction() {
        ConfigurableApplicationContext context = shared(JpaShop.class);
        context.getBean(JpaOrders.class).placeAndTell(new OrderPlaced("1"));

        await().until(() -> keys(context).size() >= 2);
        assertThat(keysInTheEnd(context)).containsExactlyInAnyOrder("1 before commit", "1 after commit");
        assertThat(orders(context)).containsExactly("1");
    }

    /** An entity publishes in the flush at the commit, which fails on another entity. */
    @Test
    void jpa_publishingInTheFlushAtTheCommit_isRejectedAndRolledBack() {
        ConfigurableApplicationContext context = shared(JpaShop.class);
        JpaOrders orders = context.getBean(JpaOrders.class);
        orders.place(new OrderPlaced("1"));
        orders.note("note");

        assertThatThrownBy(() -> orders.changeNoteAndPlace("note", new OrderPlaced("1")))
                .hasStackTraceContaining(TransactionNotJoinableException.class.getName())
                .hasStackTraceContaining("is being committed");

        await().until(() -> !keys(context).isEmpty());
        assertThat(keysInTheEnd(context)).containsExactly("1");
    }

    @Test
    void jpa_publishingInAFlushBeforeTheCommit_joins() {
        ConfigurableApplicationContext context = shared(JpaShop.class);
        JpaOrders orders = context.getBean(JpaOrders.class);
        orders.note("note");

        orders.changeNoteAndFlush("note");

        await().until(() -> !keys(context).isEmpty());
        assertThat(keysInTheEnd(context)).containsExactly("note");
    }

    /** As often as the pool has connections, and once more. */
    @Test
    void jpa_publishAsyncBeforeTheCommit_rollsBackAndReturnsTheConnection() {
        ConfigurableApplicationContext context = shared(JpaShop.class);
        JpaOrders orders = context.getBean(JpaOrders.class);
        int connections = context.getBean(HikariDataSource.class).getMaximumPoolSize();

        for (int attempt = 0; attempt <= connections; attempt++) {
            OrderPlaced order = new OrderPlaced(Integer.toString(attempt));
            assertThatThrownBy(() -> orders.placeAndAnnounce(order))
                    .isInstanceOf(TransactionNotJoinableException.class);
        }

        assertThat(orders(context)).isEmpty();
        assertThat(keysInTheEnd(context)).isEmpty();
    }
}
