package io.eventsql.spring.boot;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.InvalidInputException;
import io.eventsql.Retention;
import io.eventsql.StreamSpec;
import io.eventsql.UnknownStreamException;
import io.eventsql.spring.internal.StreamCreator;
import java.time.Duration;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.springframework.jdbc.core.JdbcTemplate;

/** Streams and settings by properties and beans. */
class StreamsConfigurationIT extends AutoConfigurationFixture {
    static final class Eager {
        Eager(EventSql eventSql) {
            eventSql.publisher().publish("orders", Event.ofText("from a constructor"));
        }
    }

    @Test
    void settings_ofProperties_areTheLibrarys() {
        application
                .withBean(DataSource.class, AutoConfigurationFixture::emptyDatabase)
                .withPropertyValues(
                        "eventsql.schema=elsewhere",
                        "eventsql.streams.orders.json=true",
                        "eventsql.streams.orders.partitions=1")
                .run(context -> assertThat(new JdbcTemplate(context.getBean(DataSource.class))
                                .queryForObject(
                                        "SELECT to_regclass('elsewhere.events_orders__json') IS NOT NULL",
                                        Boolean.class))
                        .isTrue());
    }

    @Test
    void settings_outOfRange_failTheStart() {
        application
                .withBean(DataSource.class, AutoConfigurationFixture::sharedDatabase)
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
                .withBean(DataSource.class, AutoConfigurationFixture::newDatabase)
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

    @Test
    void retention_ofProperties_isTheStreams() {
        application
                .withBean(DataSource.class, AutoConfigurationFixture::newDatabase)
                .withPropertyValues(
                        "eventsql.streams.orders.partitions=1",
                        "eventsql.streams.orders.retention.max-age=30d",
                        "eventsql.streams.orders.retention.max-bytes=2GB",
                        "eventsql.streams.orders.retention.max-events=500",
                        "eventsql.streams.orders.retention.expire-handled=true",
                        "eventsql.streams.orders.retention.abandoned-after=90m",
                        "eventsql.streams[shop.Orders-v1].retention.max-age=1h",
                        "eventsql.streams.kept.partitions=1")
                .run(context -> assertThat(context.getBean(EventSql.class).streams())
                        .containsExactlyInAnyOrder(
                                StreamSpec.of("orders")
                                        .withPartitions(1)
                                        .withRetention(Retention.FOREVER
                                                .withMaxAge(Duration.ofDays(30))
                                                .withMaxBytes(2L << 30)
                                                .withMaxEvents(500)
                                                .withExpireHandled()
                                                .withAbandonedAfter(Duration.ofMinutes(90))),
                                StreamSpec.of("shop.Orders-v1")
                                        .withRetention(Retention.FOREVER.withMaxAge(Duration.ofHours(1))),
                                StreamSpec.of("kept").withPartitions(1)));
    }

    @Test
    void retention_outOfRange_failsTheStartWithTheProperty() {
        application
                .withBean(DataSource.class, AutoConfigurationFixture::sharedDatabase)
                .withPropertyValues("eventsql.streams.orders.retention.max-age=10ms")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .isInstanceOf(InvalidInputException.class)
                        .hasMessageContaining("eventsql.streams[orders].retention.max-age"));
        application
                .withBean(DataSource.class, AutoConfigurationFixture::sharedDatabase)
                .withPropertyValues("eventsql.streams.orders.retention.max-events=0")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .isInstanceOf(InvalidInputException.class)
                        .hasMessageContaining("eventsql.streams[orders].retention.max-events"));
    }

    @Test
    void streams_declared_existBeforeEventSqlIsInjected() {
        application
                .withBean(DataSource.class, AutoConfigurationFixture::sharedDatabase)
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
                .withBean(DataSource.class, AutoConfigurationFixture::sharedDatabase)
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
    void streamCreator_missingStreams_areCreatedOnlyIfConfigured() {
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
}
