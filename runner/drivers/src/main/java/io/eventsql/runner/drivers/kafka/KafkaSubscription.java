package io.eventsql.runner.drivers.kafka;

import io.eventsql.runner.driver.DeliveryListener;
import java.time.Duration;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.WakeupException;

/** The only member of a consumer group, with its own thread. Commits offsets after the delivery of each page. */
final class KafkaSubscription implements AutoCloseable {
    private static final Duration POLL = Duration.ofSeconds(1);

    private final KafkaConsumer<String, byte[]> consumer;
    private final DeliveryListener listener;
    private final Thread thread;
    private volatile boolean closing;

    /** Starts consuming. */
    KafkaSubscription(KafkaConsumer<String, byte[]> consumer, String topic, DeliveryListener listener) {
        this.consumer = consumer;
        this.listener = listener;
        consumer.subscribe(List.of(topic));
        this.thread = Thread.ofPlatform().name("kafka-" + topic).start(this::consume);
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
        listener.delivered(page, ConsumerRecord::key, ConsumerRecord::value);
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
