package io.eventsql.runner.drivers.kafka;

import io.eventsql.Event;
import io.eventsql.runner.driver.PublishTarget;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Sends events to a topic. The producer batches the events of all callers. Thread-safe. */
final class KafkaTarget implements PublishTarget {
    private final Producer<String, byte[]> producer;
    private final String topic;

    KafkaTarget(Producer<String, byte[]> producer, String topic) {
        this.producer = producer;
        this.topic = topic;
    }

    @Override
    public void publish(List<Event> events) {
        try {
            send(events).join();
        } catch (CompletionException e) {
            throw new IllegalStateException("Kafka rejected events: " + e.getCause(), e.getCause());
        }
    }

    @Override
    public CompletionStage<?> publishAsync(List<Event> events) {
        return send(events);
    }

    private CompletableFuture<Void> send(List<Event> events) {
        return CompletableFuture.allOf(events.stream().map(this::send).toArray(CompletableFuture[]::new));
    }

    private CompletableFuture<Void> send(Event event) {
        CompletableFuture<Void> answer = new CompletableFuture<>();
        var unused = producer.send(new ProducerRecord<>(topic, event.key(), event.value()), (stored, failure) -> {
            if (failure == null) {
                answer.complete(null);
            } else {
                answer.completeExceptionally(failure);
            }
        });
        return answer;
    }
}
