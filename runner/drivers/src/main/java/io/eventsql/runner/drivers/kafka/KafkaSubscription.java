package io.eventsql.runner.drivers.kafka;

import io.eventsql.Event;
import io.eventsql.runner.driver.DeliveryListener;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** The only member of a consumer group, with its own thread. Commits offsets after the delivery of each page. */
final class KafkaSubscription implements AutoCloseable {
    private static final Duration POLL = Duration.ofSeconds(1);

    private final KafkaConsumer<String, byte[]> consumer;
    private final DeliveryListener listener;
    private final Thread thread;
    private volatile boolean closing;

    /** Starts consuming. */
    KafkaSubscription(String servers, String topic, String group, DeliveryListener listener) {
        Map<String, Object> config = Map.of(
                ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG,
                servers,
                ConsumerConfig.GROUP_ID_CONFIG,
                group,
                ConsumerConfig.AUTO_OFFSET_RESET_CONFIG,
                "earliest",
                ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG,
                false);
        this.consumer = new KafkaConsumer<>(config, new StringDeserializer(), new ByteArrayDeserializer());
        this.listener = listener;
        consumer.subscribe(List.of(topic));
        this.thread = Thread.ofPlatform().name("kafka-" + group).start(this::consume);
    }

    private void consume() {
        try (consumer) {
            while (!closing) {
                deliver(consumer.poll(POLL));
            }
            consumer.commitSync();
        } catch (WakeupException e) {
            if (!closing) {
                listener.failed(e);
            }
        } catch (RuntimeException e) {
            listener.failed(e);
        }
    }

    private void deliver(ConsumerRecords<String, byte[]> page) {
        if (page.isEmpty()) {
            return;
        }
        List<Event> events = new ArrayList<>(page.count());
        for (ConsumerRecord<String, byte[]> row : page) {
            events.add(new Event(row.key(), row.value(), Map.of()));
        }
        listener.delivered(events);
        consumer.commitAsync();
    }

    @Override
    public void close() {
        closing = true;
        consumer.wakeup();
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
