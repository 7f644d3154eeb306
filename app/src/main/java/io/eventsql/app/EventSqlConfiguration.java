package io.eventsql.app;

import io.eventsql.EventSql;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.app.benchmark.BenchmarkConsumer;
import io.eventsql.app.shards.ShardPools;
import io.eventsql.app.shards.ShardsHealthIndicator;
import io.eventsql.benchmark.settings.InvalidSettingException;
import io.eventsql.benchmark.settings.Variables;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.Environment;

/**
 * EventSQL over the app's databases. Spring closes beans before those they were made of: the subscription first, so that
 * what was handled is committed, then EventSQL, then the pools.
 */
@Configuration(proxyBeanMethods = false)
class EventSqlConfiguration {
    private static final Logger log = LoggerFactory.getLogger(EventSqlConfiguration.class);

    @Bean
    AppSettings appSettings(Environment environment) {
        return AppSettings.read(new Variables(environment::getProperty));
    }

    @Bean
    ShardPools shardPools(AppSettings settings) {
        return new ShardPools(settings.shards(), settings.poolSize());
    }

    @Bean
    ShardsHealthIndicator shardsHealthIndicator(ShardPools pools) {
        return new ShardsHealthIndicator(pools.dataSources());
    }

    @Bean
    EventSql eventSql(ShardPools pools) {
        return EventSql.builder(pools.dataSources()).build();
    }

    @Bean
    Subscription subscription(EventSql eventSql, AppSettings settings, BenchmarkConsumer consumer) {
        createIfAbsent(eventSql, settings.stream());
        Subscription subscription = eventSql.subscribeBatch(settings.consumer(), consumer);
        log.info(
                "Consumes {} as {}, {} shards",
                settings.stream().name(),
                settings.consumer().name(),
                settings.shards().size());
        return subscription;
    }

    @Bean
    ConsumerHealthIndicator consumerHealthIndicator(Subscription subscription) {
        return new ConsumerHealthIndicator(subscription);
    }

    private static void createIfAbsent(EventSql eventSql, StreamSpec wanted) {
        for (StreamSpec stream : eventSql.streams()) {
            if (stream.name().equals(wanted.name())) {
                requireSamePartitions(stream, wanted);
                return;
            }
        }
        eventSql.createStream(wanted);
    }

    /** Results name the number of partitions that was asked for: it must be the one that was measured. */
    private static void requireSamePartitions(StreamSpec existing, StreamSpec wanted) {
        if (existing.partitions() != wanted.partitions()) {
            throw new InvalidSettingException(
                    "PARTITIONS",
                    "is " + wanted.partitions() + ", but the stream " + existing.name() + " already exists with "
                            + existing.partitions());
        }
    }
}
