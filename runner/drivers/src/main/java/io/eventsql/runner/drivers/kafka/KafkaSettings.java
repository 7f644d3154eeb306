package io.eventsql.runner.drivers.kafka;

import io.eventsql.benchmark.settings.Variables;
import io.eventsql.runner.driver.DriverSettings;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * The settings of the clients: Kafka's own names after {@code producer.}, {@code async.} (producers of asynchronous
 * calls, in addition to {@code producer.}) and {@code consumer.}, and {@code async_producers}. What is not set has
 * Kafka's default.
 */
record KafkaSettings(
        String servers,
        Map<String, Object> producer,
        Map<String, Object> async,
        Map<String, Object> consumer,
        int asyncProducers) {
    private static final int PRODUCERS_MAX = 16;
    private static final String PRODUCERS = "async_producers";

    /** @throws IllegalArgumentException if a variable is missing or an option is unknown; the message names it */
    static KafkaSettings of(DriverSettings settings) {
        String servers = settings.requiredVariable("KAFKA_BOOTSTRAP_SERVERS");
        Map<String, Object> producer = new HashMap<>(Map.of(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, servers));
        producer.put(ProducerConfig.ACKS_CONFIG, "all");
        producer.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, true);
        producer.putAll(after("producer.", settings));
        Map<String, Object> async = new HashMap<>(producer);
        async.putAll(after("async.", settings));
        Map<String, Object> consumer = new HashMap<>(Map.of(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, servers));
        consumer.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        consumer.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        consumer.putAll(after("consumer.", settings));
        for (String name : settings.options().keySet()) {
            if (!name.equals(PRODUCERS) && !name.matches("(producer|async|consumer)\\..+")) {
                throw new IllegalArgumentException("driver_options." + name
                        + " is unknown; known options: " + PRODUCERS
                        + ", and Kafka's own names after producer., async. and consumer.");
            }
        }
        int producers = new Variables(settings.options()::get).number(PRODUCERS, 1, 1, PRODUCERS_MAX);
        return new KafkaSettings(servers, producer, async, consumer, producers);
    }

    private static Map<String, Object> after(String prefix, DriverSettings settings) {
        Map<String, Object> values = new HashMap<>();
        settings.options().forEach((name, value) -> {
            if (name.startsWith(prefix)) {
                values.put(name.substring(prefix.length()), value);
            }
        });
        return values;
    }

    /** Returns a producer for callers that wait. */
    KafkaProducer<String, byte[]> newProducer() {
        return new KafkaProducer<>(producer, new StringSerializer(), new ByteArraySerializer());
    }

    /** Returns the producers of asynchronous calls. */
    List<KafkaProducer<String, byte[]>> newAsyncProducers() {
        List<KafkaProducer<String, byte[]>> producers = new ArrayList<>();
        for (int i = 0; i < asyncProducers; i++) {
            producers.add(new KafkaProducer<>(async, new StringSerializer(), new ByteArraySerializer()));
        }
        return producers;
    }

    /** Returns the member of a consumer group. */
    KafkaConsumer<String, byte[]> newConsumer(String group) {
        Map<String, Object> config = new HashMap<>(consumer);
        config.put(ConsumerConfig.GROUP_ID_CONFIG, group);
        return new KafkaConsumer<>(config, new StringDeserializer(), new ByteArrayDeserializer());
    }
}
