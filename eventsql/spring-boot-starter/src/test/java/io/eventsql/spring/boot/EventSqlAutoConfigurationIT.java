package io.eventsql.spring.boot;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPublisher;
import io.eventsql.EventSql;
import io.eventsql.InvalidInputException;
import io.eventsql.Outbox;
import io.eventsql.Settings;
import io.eventsql.ShardInfo;
import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.spring.CloudEventHeaders;
import io.eventsql.spring.CloudEventSerializer;
import io.eventsql.spring.EventSerializer;
import io.eventsql.spring.EventSqlBuilderCustomizer;
import io.eventsql.spring.EventSqlDataSource;
import io.eventsql.spring.EventSqlTemplate;
import io.eventsql.spring.JacksonEventSerializer;
import io.eventsql.spring.PlainEventSerializer;
import io.eventsql.spring.TransactionTracker;
import io.eventsql.spring.fixture.TestPools;
import io.eventsql.spring.internal.StreamCreator;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.SQLException;
import java.time.InstantSource;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceInitializationAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Primary;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;

/** What the auto-configuration makes of an application's beans and properties. */
class EventSqlAutoConfigurationIT {
    private static final AtomicInteger DATABASES = new AtomicInteger();
    private static final TestPools POOLS = new TestPools();
    private static EventsDb eventsDb;

    private final ApplicationContextRunner application = new ApplicationContextRunner()
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

    private static DataSource newDatabase() {
        return POOLS.pool(eventsDb.createDatabase("auto_" + DATABASES.incrementAndGet()));
    }

    /** The address of a new database. */
    private static String newUrl() {
        String name = "auto_" + DATABASES.incrementAndGet();
        eventsDb.createDatabase(name);
        return eventsDb.jdbcUrl(name);
    }

    /** An application with these databases as shards, named a, b … */
    private ApplicationContextRunner withShards(int count) {
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

    @Test
    void dataSource_one_isTheOnlyShard() {
        DataSource own = newDatabase();
        application.withBean(DataSource.class, () -> own).run(context -> {
            assertThat(context.getBean(EventSql.class).shards())
                    .extracting(ShardInfo::dataSource)
                    .containsExactly(own);
            assertThat(context)
                    .hasSingleBean(EventPublisher.class)
                    .hasSingleBean(Outbox.class)
                    .hasSingleBean(StreamCreator.class)
                    .hasSingleBean(EventSqlTemplate.class)
                    .hasSingleBean(TransactionTracker.class)
                    .hasSingleBean(EventSerializer.class)
                    .doesNotHaveBean(ShardPools.class)
                    .doesNotHaveBean(CloudEventHeaders.class);
            assertThat(context.getBean(Outbox.class))
                    .isSameAs(context.getBean(EventSql.class).outbox());
        });
    }

    @Test
    void dataSource_none_backsOff() {
        new ApplicationContextRunner()
                .withConfiguration(
                        AutoConfigurations.of(EventSqlAutoConfiguration.class, EventSqlTemplateAutoConfiguration.class))
                .run(context -> assertThat(context)
                        .hasNotFailed()
                        .doesNotHaveBean(EventSql.class)
                        .doesNotHaveBean(StreamCreator.class)
                        .doesNotHaveBean(EventSqlTemplate.class)
                        .doesNotHaveBean(TransactionTracker.class));
    }

    @Test
    void enabled_false_backsOff() {
        application
                .withBean(DataSource.class, EventSqlAutoConfigurationIT::newDatabase)
                .withPropertyValues("eventsql.enabled=false", "eventsql.shards.a.url=jdbc:postgresql://nowhere/db")
                .run(context -> assertThat(context)
                        .hasNotFailed()
                        .doesNotHaveBean(EventSql.class)
                        .doesNotHaveBean(ShardPools.class)
                        .doesNotHaveBean(EventSqlTemplate.class));
    }

    @Test
    void dataSource_several_asksForAChoice() {
        application
                .withBean("one", DataSource.class, () -> eventsDb.dataSource())
                .withBean("two", DataSource.class, () -> eventsDb.dataSource())
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .hasMessageContaining("one")
                        .hasMessageContaining("two"));
    }

    @Configuration(proxyBeanMethods = false)
    static class PrimaryAndAnother {
        @Bean
        @Primary
        DataSource application() {
            return newDatabase();
        }

        @Bean
        DataSource another() {
            return newDatabase();
        }
    }

    @Test
    void dataSource_primary_isTaken() {
        application
                .withUserConfiguration(PrimaryAndAnother.class)
                .run(context -> assertThat(context.getBean(Outbox.class).dataSources())
                        .containsExactly(context.getBean("application", DataSource.class)));
    }

    @Configuration(proxyBeanMethods = false)
    static class MarkedBesideTheApplications {
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

    @Test
    void dataSource_marked_isTheShardAndTheApplicationsIsAnOutbox() {
        application.withUserConfiguration(MarkedBesideTheApplications.class).run(context -> {
            DataSource events = context.getBean("events", DataSource.class);
            assertThat(context.getBean(EventSql.class).shards())
                    .extracting(ShardInfo::dataSource)
                    .containsExactly(events);
            assertThat(context.getBean(Outbox.class).dataSources())
                    .containsExactly(events, context.getBean("application", DataSource.class));
        });
        application
                .withUserConfiguration(MarkedBesideTheApplications.class)
                .withPropertyValues("eventsql.outbox.application-data-source=false")
                .run(context -> assertThat(context.getBean(Outbox.class).dataSources())
                        .containsExactly(context.getBean("events", DataSource.class)));
    }

    @Test
    void dataSource_behindProxiesOfTransactions_isUnwrapped() {
        DataSource own = newDatabase();
        application
                .withBean(
                        DataSource.class,
                        () -> new TransactionAwareDataSourceProxy(new LazyConnectionDataSourceProxy(own)))
                .run(context ->
                        assertThat(context.getBean(Outbox.class).dataSources()).containsExactly(own));
    }

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
    void shards_closed_closeTheirPools() {
        HikariDataSource[] pool = {null};

        withShards(1)
                .run(context -> pool[0] =
                        (HikariDataSource) context.getBean(ShardPools.class).dataSource("a"));

        assertThat(pool[0].isClosed()).isTrue();
    }

    @Test
    void shards_besideAnApplicationsDataSource_makeItAnOutbox() {
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
    void shards_besideMarkedDataSources_makeThemOutboxes() {
        withShards(1)
                .withUserConfiguration(MarkedBesideTheApplications.class)
                .run(context -> assertThat(context.getBean(Outbox.class).dataSources())
                        .hasSize(3)
                        .endsWith(
                                context.getBean("events", DataSource.class),
                                context.getBean("application", DataSource.class)));
    }

    @Test
    void shards_besideAnotherKindOfDatabase_giveItNoOutbox() {
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

    /** A database of some kind, as far as its driver says. */
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

    /** The pools are no beans: the application's own DataSource is configured by Spring Boot as ever. */
    @Test
    void shards_besideSpringsDataSourceProperties_leaveThemAlone() {
        String url = newUrl();
        withShards(2)
                .withConfiguration(AutoConfigurations.of(DataSourceAutoConfiguration.class))
                .withPropertyValues(
                        "spring.datasource.url=" + url,
                        "spring.datasource.username=" + eventsDb.username(),
                        "spring.datasource.password=" + eventsDb.password())
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
    void shards_oneDoesNotAnswer_startsOnceTheClusterIsKnown() {
        ApplicationContextRunner both = withShards(2).withPropertyValues("eventsql.streams.orders.partitions=2");
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
    void shards_withoutUrl_areRefusedByTheirProperty() {
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

    @Test
    void settings_ofProperties_areTheLibrarys() {
        application
                .withBean(DataSource.class, EventSqlAutoConfigurationIT::newDatabase)
                .withPropertyValues("eventsql.schema=elsewhere", "eventsql.streams.orders.json=true")
                .run(context -> assertThat(new JdbcTemplate(context.getBean(DataSource.class))
                                .queryForObject(
                                        "SELECT to_regclass('elsewhere.events_orders__json') IS NOT NULL",
                                        Boolean.class))
                        .isTrue());
    }

    @Test
    void settings_outOfRange_failTheStart() {
        application
                .withBean(DataSource.class, EventSqlAutoConfigurationIT::newDatabase)
                .withPropertyValues("eventsql.publish-timeout=1ms")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .isInstanceOf(InvalidInputException.class)
                        .hasMessageContaining("settings.publishTimeout"));
    }

    @Test
    void streams_ofBeansAndProperties_areCreated() {
        application
                .withBean(DataSource.class, EventSqlAutoConfigurationIT::newDatabase)
                .withBean(
                        "invoices",
                        StreamSpec.class,
                        () -> StreamSpec.of("invoices").withPartitions(3))
                .withPropertyValues(
                        "eventsql.streams.orders.partitions=4",
                        "eventsql.streams.orders.segment-size=5000",
                        "eventsql.streams.order_lines.json=true")
                .run(context -> assertThat(context.getBean(EventSql.class).streams())
                        .containsExactlyInAnyOrder(
                                StreamSpec.of("invoices").withPartitions(3),
                                StreamSpec.of("orders").withPartitions(4).withSegmentSize(5_000),
                                StreamSpec.of("order_lines").asJson()));
    }

    static final class Eager {
        Eager(EventSql eventSql) {
            eventSql.publisher().publish("orders", Event.ofText("from a constructor"));
        }
    }

    @Test
    void streams_declared_areThereForWhoeverGetsEventSql() {
        application
                .withBean(DataSource.class, EventSqlAutoConfigurationIT::newDatabase)
                .withBean(Eager.class)
                .withPropertyValues("eventsql.streams.orders.partitions=1")
                .run(context -> assertThat(context).hasNotFailed().hasSingleBean(Eager.class));
    }

    @Test
    void streams_thatExistDifferently_failTheStart() {
        DataSource own = newDatabase();
        application
                .withBean(DataSource.class, () -> own)
                .withPropertyValues("eventsql.streams.orders.partitions=4")
                .run(context -> assertThat(context).hasNotFailed());
        application
                .withBean(DataSource.class, () -> own)
                .withPropertyValues("eventsql.streams.orders.partitions=5")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .isInstanceOf(InvalidInputException.class)
                        .hasMessageContaining("stream.partitions"));
    }

    @Test
    void streams_declaredTwice_failTheStart() {
        application
                .withBean(DataSource.class, EventSqlAutoConfigurationIT::newDatabase)
                .withBean(
                        "orders",
                        StreamSpec.class,
                        () -> StreamSpec.of("orders").withPartitions(3))
                .withPropertyValues("eventsql.streams.orders.partitions=4")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .isInstanceOf(InvalidInputException.class)
                        .hasMessageContaining("declared twice"));
    }

    @Test
    void streamCreator_requiredStreams_areCreatedOnlyIfThatIsWanted() {
        DataSource own = newDatabase();
        application
                .withBean(DataSource.class, () -> own)
                .withPropertyValues("eventsql.create-missing-streams=true")
                .run(context -> {
                    StreamCreator creator = context.getBean(StreamCreator.class);
                    creator.createIfMissing("orders");
                    creator.createIfMissing("orders");
                    assertThat(context.getBean(EventSql.class).streams()).containsExactly(StreamSpec.of("orders"));
                });
        application.withBean(DataSource.class, () -> own).run(context -> {
            StreamCreator creator = context.getBean(StreamCreator.class);
            creator.createIfMissing("orders");
            assertThatThrownBy(() -> creator.createIfMissing("invoices"))
                    .isInstanceOf(UnknownStreamException.class)
                    .hasMessageContaining("no stream 'invoices'")
                    .hasMessageContaining("StreamSpec bean or eventsql.streams[invoices].partitions=10")
                    .hasMessageContaining("eventsql.create-missing-streams=true");
        });
    }

    @Test
    void customizers_changeTheBuilderLast() {
        DataSource own = newDatabase();
        application
                .withBean(DataSource.class, () -> own)
                .withPropertyValues("eventsql.schema=overruled")
                .withBean(
                        EventSqlBuilderCustomizer.class,
                        () -> builder -> builder.settings(
                                Settings.builder().schema("chosen").build()))
                .run(context -> assertThat(new JdbcTemplate(own)
                                .queryForList(
                                        "SELECT nspname FROM pg_namespace WHERE nspname IN ('chosen', 'overruled')",
                                        String.class))
                        .containsExactly("chosen"));
    }

    @Test
    void consumerListeners_areTold() {
        AtomicInteger assigned = new AtomicInteger();
        application
                .withBean(DataSource.class, EventSqlAutoConfigurationIT::newDatabase)
                .withPropertyValues("eventsql.streams.orders.partitions=2")
                .withBean(ConsumerListener.class, () -> new ConsumerListener() {
                    @Override
                    public void partitionAssigned(ConsumerPartition partition, long nextOffset) {
                        assigned.incrementAndGet();
                    }
                })
                .run(context -> {
                    context.getBean(EventSql.class).subscribe(ConsumerSpec.of("orders", "mailer"), event -> {});
                    await().until(() -> assigned.get() == 2);
                });
    }

    @Test
    void beans_ofTheApplication_replaceTheDefaults() {
        DataSource own = newDatabase();
        EventSql eventSql = EventSql.builder(own).build();
        EventSerializer serializer = new PlainEventSerializer();
        application
                .withBean(DataSource.class, () -> own)
                .withBean(EventSql.class, () -> eventSql)
                .withBean(EventSerializer.class, () -> serializer)
                .withBean(
                        CloudEventHeaders.class,
                        () -> new CloudEventHeaders("/mine", "", Map.of(), InstantSource.system()))
                .withPropertyValues("eventsql.cloud-events.source=/theirs")
                .run(context -> {
                    assertThat(context.getBean(EventSql.class)).isSameAs(eventSql);
                    assertThat(context.getBean(EventPublisher.class)).isSameAs(eventSql.publisher());
                    assertThat(context.getBean(EventSerializer.class)).isSameAs(serializer);
                    assertThat(context).hasSingleBean(EventSqlTemplate.class).hasSingleBean(CloudEventHeaders.class);
                });
    }

    @Test
    void serializer_followsWhatIsThere() {
        ApplicationContextRunner one = application.withBean(DataSource.class, EventSqlAutoConfigurationIT::newDatabase);

        one.run(context -> assertThat(context.getBean(EventSerializer.class)).isInstanceOf(CloudEventSerializer.class));
        one.withClassLoader(new FilteredClassLoader("io.cloudevents"))
                .run(context ->
                        assertThat(context.getBean(EventSerializer.class)).isInstanceOf(JacksonEventSerializer.class));
        one.withClassLoader(new FilteredClassLoader("io.cloudevents", "tools.jackson"))
                .run(context -> assertThat(context.getBean(EventSerializer.class))
                        .isExactlyInstanceOf(PlainEventSerializer.class));
        one.withClassLoader(new FilteredClassLoader("io.cloudevents"))
                .withPropertyValues("eventsql.cloud-events.source=/orders")
                .run(context -> assertThat(context).hasSingleBean(CloudEventHeaders.class));
    }

    /** A team that prepares the schema itself, with a tool that Spring Boot knows to come first. */
    @Test
    void eventSql_withDatabaseInitializer_comesBehindIt() {
        DataSource own = newDatabase();
        application
                .withConfiguration(AutoConfigurations.of(DataSourceInitializationAutoConfiguration.class))
                .withBean(DataSource.class, () -> own)
                .withPropertyValues(
                        "spring.sql.init.mode=always", "spring.sql.init.schema-locations=classpath:prepare-schema.sql")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(commentOnSchema(own)).isEqualTo("prepared");
                });
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Empty {}

    /** Spring Boot would insist on a DataSource of the application's own. */
    @Test
    void shards_areAllDatabasesOfAnApplication_isEnough() {
        String url = newUrl();
        try (ConfigurableApplicationContext context = new SpringApplicationBuilder(Empty.class)
                .web(WebApplicationType.NONE)
                .properties(
                        "eventsql.shards.only.url=" + url,
                        "eventsql.shards.only.username=" + eventsDb.username(),
                        "eventsql.shards.only.password=" + eventsDb.password(),
                        "eventsql.streams.orders.partitions=1")
                .run()) {
            assertThat(context.getBeansOfType(DataSource.class)).isEmpty();
            context.getBean(EventSqlTemplate.class).publish("orders", Map.of("id", 1));
        }
    }

    private static String commentOnSchema(DataSource dataSource) {
        return new JdbcTemplate(dataSource)
                .queryForObject("SELECT obj_description('eventsql'::regnamespace)", String.class);
    }
}
