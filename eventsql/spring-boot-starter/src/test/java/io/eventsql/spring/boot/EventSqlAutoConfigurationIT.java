package io.eventsql.spring.boot;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.ContinuousAggregateSpec;
import io.eventsql.EventPublisher;
import io.eventsql.EventSql;
import io.eventsql.InvalidInputException;
import io.eventsql.Outbox;
import io.eventsql.Settings;
import io.eventsql.ShardInfo;
import io.eventsql.spring.CloudEventHeaders;
import io.eventsql.spring.CloudEventSerializer;
import io.eventsql.spring.EventSerializer;
import io.eventsql.spring.EventSqlBuilderCustomizer;
import io.eventsql.spring.EventSqlContinuousAggregates;
import io.eventsql.spring.EventSqlListenerRegistry;
import io.eventsql.spring.EventSqlTemplate;
import io.eventsql.spring.EventTypes;
import io.eventsql.spring.JacksonEventSerializer;
import io.eventsql.spring.PlainEventSerializer;
import io.eventsql.spring.TransactionTracker;
import io.eventsql.spring.internal.StreamCreator;
import java.time.InstantSource;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceInitializationAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Primary;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import tools.jackson.databind.json.JsonMapper;

/** The beans of an application, by its data sources and own beans. */
class EventSqlAutoConfigurationIT extends AutoConfigurationFixture {
    @Configuration(proxyBeanMethods = false)
    static class PrimaryAndAnother {
        @Bean
        @Primary
        DataSource application() {
            return sharedDatabase();
        }

        @Bean
        DataSource another() {
            return sharedDatabase();
        }
    }

    @Test
    void dataSource_one_isTheOnlyShard() {
        DataSource own = sharedDatabase();
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
                .withBean(DataSource.class, AutoConfigurationFixture::sharedDatabase)
                .withPropertyValues("eventsql.enabled=false", "eventsql.shards.a.url=jdbc:postgresql://nowhere/db")
                .run(context -> assertThat(context)
                        .hasNotFailed()
                        .doesNotHaveBean(EventSql.class)
                        .doesNotHaveBean(ShardPools.class)
                        .doesNotHaveBean(EventSqlTemplate.class));
    }

    /** As spring.autoconfigure.exclude does: an application may configure EventSQL itself, or not at all. */
    @Test
    void eventSqlAutoConfiguration_excluded_leavesTheOthersUsable() {
        ApplicationContextRunner others = new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        JacksonAutoConfiguration.class,
                        EventSqlAggregateAutoConfiguration.class,
                        EventSqlEndpointAutoConfiguration.class,
                        EventSqlHealthAutoConfiguration.class,
                        EventSqlListenerAutoConfiguration.class,
                        EventSqlMetricsAutoConfiguration.class,
                        EventSqlObservationAutoConfiguration.class,
                        EventSqlTemplateAutoConfiguration.class));
        others.run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(EventSqlTemplate.class));

        EventSql own = EventSql.builder(newDatabase()).build();
        others.withBean(EventSql.class, () -> own)
                .withBean(ContinuousAggregateSpec.class, () -> ContinuousAggregateSpec.of("per_minute", "orders"))
                .withPropertyValues("eventsql.streams.orders.partitions=1", "eventsql.create-missing-streams=true")
                .run(context -> assertThat(context)
                        .hasNotFailed()
                        .hasSingleBean(EventSqlTemplate.class)
                        .hasSingleBean(StreamCreator.class)
                        .hasSingleBean(EventSqlContinuousAggregates.class)
                        .hasSingleBean(EventSqlListenerRegistry.class));
    }

    @Test
    void dataSource_several_failsWithTheirNames() {
        application
                .withBean("one", DataSource.class, () -> EVENTS_DB.dataSource())
                .withBean("two", DataSource.class, () -> EVENTS_DB.dataSource())
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .hasMessageContaining("one")
                        .hasMessageContaining("two"));
    }

    @Test
    void dataSource_primary_isUsed() {
        application
                .withUserConfiguration(PrimaryAndAnother.class)
                .run(context -> assertThat(context.getBean(Outbox.class).dataSources())
                        .containsExactly(context.getBean("application", DataSource.class)));
    }

    @Test
    void dataSource_marked_isTheShardAndTheApplicationsIsAnOutbox() {
        application.withUserConfiguration(MarkedNextToTheApplications.class).run(context -> {
            DataSource events = context.getBean("events", DataSource.class);
            assertThat(context.getBean(EventSql.class).shards())
                    .extracting(ShardInfo::dataSource)
                    .containsExactly(events);
            assertThat(context.getBean(Outbox.class).dataSources())
                    .containsExactly(events, context.getBean("application", DataSource.class));
        });
        application
                .withUserConfiguration(MarkedNextToTheApplications.class)
                .withPropertyValues("eventsql.outbox.application-data-source=false")
                .run(context -> assertThat(context.getBean(Outbox.class).dataSources())
                        .containsExactly(context.getBean("events", DataSource.class)));
    }

    @Test
    void dataSource_behindProxiesOfTransactions_isUnwrapped() {
        DataSource own = sharedDatabase();
        application
                .withBean(
                        DataSource.class,
                        () -> new TransactionAwareDataSourceProxy(new LazyConnectionDataSourceProxy(own)))
                .run(context ->
                        assertThat(context.getBean(Outbox.class).dataSources()).containsExactly(own));
    }

    @Test
    void customizers_changeTheBuilderLast() {
        DataSource own = newDatabase();
        JdbcTemplate jdbc = new JdbcTemplate(own);
        String shards = "SELECT count(*) FROM eventsql.shard";
        assertThat(jdbc.queryForObject(shards, Integer.class)).isZero();
        application
                .withBean(DataSource.class, () -> own)
                .withPropertyValues("eventsql.schema=overruled")
                .withBean(
                        EventSqlBuilderCustomizer.class,
                        () -> builder -> builder.settings(
                                Settings.builder().schema("eventsql").build()))
                .run(context -> {
                    assertThat(jdbc.queryForObject(shards, Integer.class)).isOne();
                    assertThat(jdbc.queryForObject("SELECT to_regnamespace('overruled') IS NULL", Boolean.class))
                            .isTrue();
                });
    }

    @Test
    void customizer_addsAnOutbox_nextToThatOfTheApplication() {
        DataSource another = newDatabase();
        application
                .withUserConfiguration(MarkedNextToTheApplications.class)
                .withBean(EventSqlBuilderCustomizer.class, () -> builder -> builder.outbox(another, another))
                .run(context -> {
                    Outbox outbox = context.getBean(Outbox.class);
                    DataSource events = context.getBean("events", DataSource.class);
                    DataSource own = context.getBean("application", DataSource.class);
                    assertThat(outbox.dataSources()).containsExactly(events, own, another);
                    assertThat(outbox.names()).as("what is relayed").hasSize(3);
                });
    }

    @Test
    void consumerListeners_areRegistered() {
        AtomicInteger assigned = new AtomicInteger();
        application
                .withBean(DataSource.class, AutoConfigurationFixture::sharedDatabase)
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
        DataSource own = sharedDatabase();
        EventSql eventSql = EventSql.builder(own).build();
        EventSerializer serializer = new PlainEventSerializer();
        application
                .withBean(DataSource.class, () -> own)
                .withBean(EventSql.class, () -> eventSql)
                .withBean(EventSerializer.class, () -> serializer)
                .withBean(
                        CloudEventHeaders.class,
                        () -> new CloudEventHeaders("/mine", new EventTypes(), InstantSource.system()))
                .withPropertyValues("eventsql.cloud-events.source=/theirs")
                .run(context -> {
                    assertThat(context.getBean(EventSql.class)).isSameAs(eventSql);
                    assertThat(context.getBean(EventPublisher.class)).isSameAs(eventSql.publisher());
                    assertThat(context.getBean(EventSerializer.class)).isSameAs(serializer);
                    assertThat(context).hasSingleBean(EventSqlTemplate.class).hasSingleBean(CloudEventHeaders.class);
                });
    }

    record Published(String id) {}

    static final class Elsewhere {
        record Published(String id) {}
    }

    @Test
    void eventTypes_ofPropertiesAndBeans_areRegistered_andAClashIsFoundAtStart() {
        ApplicationContextRunner one = application
                .withBean(DataSource.class, AutoConfigurationFixture::sharedDatabase)
                .withPropertyValues("eventsql.event-types=" + Published.class.getName());

        one.run(context ->
                assertThat(context.getBean(EventTypes.class).find("Published")).isEqualTo(Published.class));
        one.withBean(EventTypes.class, () -> new EventTypes(Elsewhere.class))
                .run(context -> assertThat(context).getBean(EventTypes.class).satisfies(types -> {
                    assertThat(types.find("Published")).isEqualTo(Published.class);
                    assertThat(types.find("Elsewhere")).isEqualTo(Elsewhere.class);
                }));
        one.withBean(EventTypes.class, () -> new EventTypes(Elsewhere.Published.class))
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .isInstanceOf(InvalidInputException.class)
                        .hasMessageContainingAll(Published.class.getName(), Elsewhere.Published.class.getName()));
    }

    @Test
    void serializer_dependsOnTheClassPath() {
        ApplicationContextRunner one = application.withBean(DataSource.class, AutoConfigurationFixture::sharedDatabase);

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

    @Test
    void serializer_ofSeveralMappers_failsWithTheirNamesUnlessOneIsChosen() {
        ApplicationContextRunner two = application
                .withBean(DataSource.class, AutoConfigurationFixture::sharedDatabase)
                .withBean("web", JsonMapper.class, JsonMapper::new)
                .withBean("events", JsonMapper.class, JsonMapper::new);

        two.run(context -> assertThat(context)
                .getFailure()
                .hasStackTraceContaining("several JsonMapper beans, none of them primary: [web, events]"));
        two.withBean("chosen", JsonMapper.class, JsonMapper::new, bean -> bean.setPrimary(true))
                .run(context ->
                        assertThat(context.getBean(EventSerializer.class)).isInstanceOf(CloudEventSerializer.class));
        two.withBean(EventSerializer.class, PlainEventSerializer::new)
                .run(context -> assertThat(context).hasNotFailed().hasSingleBean(EventSqlTemplate.class));
    }

    /** The schema is prepared by a database initializer that Spring Boot runs first. */
    @Test
    void eventSql_withDatabaseInitializer_isCreatedAfterIt() {
        DataSource own = emptyDatabase();
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
}
