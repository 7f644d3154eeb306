package io.eventsql.spring.boot;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventPublisher;
import io.eventsql.EventSql;
import io.eventsql.Outbox;
import io.eventsql.ReplicaStatus;
import io.eventsql.ShardInfo;
import io.eventsql.spring.EventSqlTemplate;
import io.eventsql.spring.fixture.TestServer;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Test;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DelegatingDataSource;

/** Databases in {@code eventsql.shards}. */
class ShardsConfigurationIT extends AutoConfigurationFixture {
    /** A database whose driver reports the given product. */
    private static final class SaysItIs extends DelegatingDataSource {
        private final String product;

        SaysItIs(String product, DataSource target) {
            super(target);
            this.product = product;
        }

        @Override
        public Connection getConnection() throws SQLException {
            Connection connection = super.getConnection();
            return proxy(
                    Connection.class,
                    connection,
                    "getMetaData",
                    () -> proxy(
                            DatabaseMetaData.class, connection.getMetaData(), "getDatabaseProductName", () -> product));
        }

        private static <T> T proxy(Class<T> type, T target, String method, Callable<?> answer) {
            return type.cast(Proxy.newProxyInstance(
                    type.getClassLoader(),
                    new Class<?>[] {type},
                    (self, called, arguments) ->
                            called.getName().equals(method) ? answer.call() : called.invoke(target, arguments)));
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Empty {}

    @Test
    void shards_ofProperties_haveTheirOwnPools() {
        withShards(3)
                .withPropertyValues(
                        "eventsql.shards.b.pool-size=7",
                        "eventsql.shards.b.connection-timeout=3s",
                        "eventsql.shards.b.hikari.minimum-idle=2",
                        "eventsql.shards.b.hikari.data-source-properties.ApplicationName=shop")
                .run(context -> {
                    assertThat(context.getBean(EventSql.class).shards()).hasSize(3);
                    assertThat(context).doesNotHaveBean(DataSource.class);
                    ShardPools pools = context.getBean(ShardPools.class);
                    HikariDataSource b = (HikariDataSource) pools.dataSource("b");
                    assertThat(b.getMaximumPoolSize()).isEqualTo(7);
                    assertThat(b.getConnectionTimeout()).isEqualTo(3_000);
                    assertThat(b.getMinimumIdle()).isEqualTo(2);
                    assertThat(new JdbcTemplate(b).queryForObject("SHOW application_name", String.class))
                            .isEqualTo("shop");
                    assertThat(pools.dataSources()).hasSize(3);
                });
    }

    @Test
    void replica_ofProperties_hasItsOwnPoolAndIsRead() {
        withShards(2)
                .withConfiguration(AutoConfigurations.of(
                        EventSqlMetricsAutoConfiguration.class, EventSqlHealthAutoConfiguration.class))
                .withBean(SimpleMeterRegistry.class)
                .withPropertyValues(
                        "eventsql.max-replica-lag=2s",
                        "eventsql.shards.b.replica.url=${eventsql.shards.b.url}", // the primary counts as its replica
                        "eventsql.shards.b.replica.pool-size=3",
                        "eventsql.shards.b.replica.connection-timeout=1s")
                .run(context -> {
                    ShardPools pools = context.getBean(ShardPools.class);
                    assertThat(pools.replicas()).containsOnlyKeys(pools.dataSource("b"));
                    HikariDataSource replica =
                            (HikariDataSource) pools.replicas().get(pools.dataSource("b"));
                    assertThat(replica.getMaximumPoolSize()).isEqualTo(3);
                    assertThat(replica.getConnectionTimeout()).isEqualTo(1_000);
                    EventSql eventSql = context.getBean(EventSql.class);
                    assertThat(eventSql.replicas())
                            .extracting(ReplicaStatus::name)
                            .containsExactly("b");
                    await().until(() -> eventSql.replicas().getFirst().isUsed());
                    MeterRegistry registry = context.getBean(MeterRegistry.class);
                    context.getBean(MeterBinder.class).bindTo(registry);
                    assertThat(registry.get("eventsql.replica.used")
                                    .tag("shard", "b")
                                    .gauge()
                                    .value())
                            .isEqualTo(1);
                    assertThat(registry.get("eventsql.replica.lag").timeGauge().value(TimeUnit.SECONDS))
                            .isBetween(0.0, 2.0);
                    assertThat(context.getBean(HealthIndicator.class).health().getDetails())
                            .extractingByKey("replicas", InstanceOfAssertFactories.map(String.class, String.class))
                            .hasEntrySatisfying("b", text -> assertThat(text).startsWith("used, "));
                });
    }

    @Test
    void shards_ofProperties_keepTheirNames() {
        withShards(2)
                .withConfiguration(AutoConfigurations.of(
                        EventSqlMetricsAutoConfiguration.class, EventSqlHealthAutoConfiguration.class))
                .withBean(SimpleMeterRegistry.class)
                .withPropertyValues("eventsql.streams.orders.partitions=1")
                .run(context -> {
                    EventSql eventSql = context.getBean(EventSql.class);
                    for (int i = 0; i < 20; i++) {
                        eventSql.publisher().publish("orders", Event.ofText("key-" + i, "x"));
                    }
                    assertThat(eventSql.shards()).extracting(ShardInfo::name).containsExactlyInAnyOrder("a", "b");
                    assertThat(context.getBean(HealthIndicator.class).health().getDetails())
                            .containsEntry("shards", Map.of("a", "UP", "b", "UP"));
                    MeterRegistry registry = context.getBean(MeterRegistry.class);
                    context.getBean(MeterBinder.class).bindTo(registry);
                    for (String meter : List.of("eventsql.append", "eventsql.buffer")) {
                        assertThat(registry.find(meter).meters())
                                .extracting(found -> found.getId().getTag("shard"))
                                .containsExactlyInAnyOrder("a", "b");
                    }
                    assertThat(eventSql.outbox().names()).containsExactlyInAnyOrder("a", "b");
                });
    }

    @Test
    void shards_closed_closeTheirPools() {
        HikariDataSource[] pool = {null};

        withShards(1)
                .run(context -> pool[0] =
                        (HikariDataSource) context.getBean(ShardPools.class).dataSource("a"));

        assertThat(pool[0].isClosed()).isTrue();
    }

    @Test
    void shards_nextToTheApplicationsDataSource_makeItAnOutbox() {
        DataSource own = newDatabase();
        withShards(1).withBean(DataSource.class, () -> own).run(context -> {
            assertThat(context.getBean(Outbox.class).dataSources()).hasSize(2).endsWith(own);
            assertThat(context.getBean(DataSource.class)).isSameAs(own);
            assertThat(context.getBean(Outbox.class).backlogs()).hasSize(2);
        });
        withShards(1)
                .withBean(DataSource.class, () -> own)
                .withPropertyValues("eventsql.outbox.application-data-source=false")
                .run(context ->
                        assertThat(context.getBean(Outbox.class).dataSources()).doesNotContain(own));
    }

    @Test
    void shards_nextToMarkedDataSources_makeThemOutboxes() {
        withShards(1)
                .withUserConfiguration(MarkedNextToTheApplications.class)
                .run(context -> assertThat(context.getBean(Outbox.class).dataSources())
                        .hasSize(3)
                        .endsWith(
                                context.getBean("events", DataSource.class),
                                context.getBean("application", DataSource.class)));
    }

    @Test
    void shards_nextToAnotherDatabaseProduct_createNoOutbox() {
        DataSource own = newDatabase();
        withShards(1)
                .withBean(DataSource.class, () -> new SaysItIs("H2", own))
                .run(context ->
                        assertThat(context.getBean(Outbox.class).dataSources()).hasSize(1));
        withShards(1)
                .withBean(DataSource.class, () -> new SaysItIs("PostgreSQL", own))
                .run(context ->
                        assertThat(context.getBean(Outbox.class).dataSources()).hasSize(2));
    }

    /** The pools are no beans, so that Spring Boot configures the application's own DataSource. */
    @Test
    void shards_nextToSpringDataSourceProperties_doNotAffectThem() {
        String url = TestServer.newUrl();
        withShards(2)
                .withConfiguration(AutoConfigurations.of(DataSourceAutoConfiguration.class))
                .withPropertyValues(
                        "spring.datasource.url=" + url,
                        "spring.datasource.username=" + EVENTS_DB.username(),
                        "spring.datasource.password=" + EVENTS_DB.password())
                .run(context -> {
                    DataSource own = context.getBean(DataSource.class);
                    assertThat(new JdbcTemplate(own).queryForObject("SELECT current_database()", String.class))
                            .isEqualTo(url.replaceFirst(".*/([^?]*).*", "$1"));
                    assertThat(context.getBean(Outbox.class).dataSources())
                            .hasSize(3)
                            .endsWith(own);
                });
    }

    @Test
    void shards_oneUnavailable_startsOnceTheClusterIsKnown() {
        ApplicationContextRunner both = withShards(2).withPropertyValues("eventsql.streams.orders.partitions=1");
        both.run(context -> assertThat(context).hasNotFailed());

        both.withPropertyValues(
                        "eventsql.shards.b.url=jdbc:postgresql://127.0.0.1:1/nowhere",
                        "eventsql.shards.b.connection-timeout=500ms",
                        "eventsql.network-timeout=500ms")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(context.getBean(EventSql.class).shards()).hasSize(1);
                    assertThat(context.getBean(EventPublisher.class)
                                    .publish("orders", Event.ofText("x"))
                                    .shard())
                            .isZero();
                });
    }

    @Test
    void shards_withoutUrl_areRejectedByTheirProperty() {
        application
                .withPropertyValues("eventsql.shards.a.username=x")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .isInstanceOfSatisfying(
                                InvalidConfigurationPropertyValueException.class,
                                failure -> assertThat(failure.getName()).isEqualTo("eventsql.shards.a.url")));
    }

    @Test
    void shards_withJndiNameOfAPool_areRejectedByThatProperty() {
        application
                .withPropertyValues(
                        "eventsql.shards.a.url=jdbc:postgresql://127.0.0.1:1/nowhere",
                        "eventsql.shards.a.hikari.dataSourceJNDI=java:comp/env/jdbc/orders")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .isInstanceOfSatisfying(
                                InvalidConfigurationPropertyValueException.class,
                                failure -> assertThat(failure.getName())
                                        .isEqualTo("eventsql.shards.a.hikari.data-source-jndi")));
    }

    @Test
    void preferredShard_getsEventsWithoutKey() {
        withShards(3)
                .withPropertyValues("eventsql.preferred-shard=c", "eventsql.streams.orders.partitions=1")
                .run(context -> {
                    DataSource c = context.getBean(ShardPools.class).dataSource("c");
                    int number = context.getBean(EventSql.class).shards().stream()
                            .filter(shard -> shard.dataSource().equals(c))
                            .findFirst()
                            .orElseThrow()
                            .number();
                    for (int i = 0; i < 5; i++) {
                        assertThat(context.getBean(EventPublisher.class)
                                        .publish("orders", Event.ofText("x"))
                                        .shard())
                                .isEqualTo(number);
                    }
                });
        withShards(1)
                .withPropertyValues("eventsql.preferred-shard=z")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .isInstanceOf(InvalidConfigurationPropertyValueException.class)
                        .hasMessageContaining("eventsql.preferred-shard"));
    }

    /** Spring Boot alone would require a DataSource of the application. */
    @Test
    void shards_withoutDataSourceOfTheApplication_areSufficient() {
        String url = TestServer.newUrl();
        try (ConfigurableApplicationContext context = new SpringApplicationBuilder(Empty.class)
                .web(WebApplicationType.NONE)
                .properties(
                        "eventsql.shards.only.url=" + url,
                        "eventsql.shards.only.username=" + EVENTS_DB.username(),
                        "eventsql.shards.only.password=" + EVENTS_DB.password(),
                        "eventsql.streams.orders.partitions=1")
                .run()) {
            assertThat(context.getBeansOfType(DataSource.class)).isEmpty();
            context.getBean(EventSqlTemplate.class).publish("orders", Map.of("id", 1));
        }
    }
}
