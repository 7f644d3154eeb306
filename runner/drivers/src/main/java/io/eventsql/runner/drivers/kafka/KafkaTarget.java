package io.eventsql.runner.drivers.kafka;

import io.eventsql.Event;
import io.eventsql.runner.driver.PublishTarget;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.jspecify.annotations.Nullable;

/** Sends events to a topic. A producer batches the events of all its callers. Thread-safe. */
final class KafkaTarget implements PublishTarget {
    private final Producer<String, byte[]> waiting;
    private final List<? extends Producer<String, byte[]>> async;
    private final String topic;
    private final AtomicLong turn = new AtomicLong();

    /**
     * @param waiting for calls that wait
     * @param async for those that do not; events of one key all go to the same producer
     */
    KafkaTarget(Producer<String, byte[]> waiting, List<? extends Producer<String, byte[]>> async, String topic) {
        this.waiting = waiting;
        this.async = async;
        this.topic = topic;
    }

    @Override
    public void publish(List<Event> events) {
        try {
            Answer answer = new Answer(events.size());
            events.forEach(event -> send(waiting, event, answer));
            answer.join();
        } catch (CompletionException e) {
            throw new IllegalStateException("Kafka rejected events: " + e.getCause(), e.getCause());
        }
    }

    @Override
    public CompletionStage<?> publishAsync(List<Event> events) {
        Answer answer = new Answer(events.size());
        long callTurn = async.size() == 1 ? 0 : turn.getAndIncrement();
        for (Event event : events) {
            String key = event.key();
            long chosen = key == null ? callTurn : key.hashCode();
            send(async.get(Math.floorMod(chosen, async.size())), event, answer);
        }
        return answer;
    }

    private void send(Producer<String, byte[]> producer, Event event, Answer answer) {
        var unused = producer.send(new ProducerRecord<>(topic, event.key(), event.value()), answer);
    }

    /** The answer to a call, and the callback of each of its records. */
    private static final class Answer extends CompletableFuture<@Nullable Void> implements Callback {
        private final AtomicInteger open;

        Answer(int events) {
            open = new AtomicInteger(events);
        }

        @Override
        public void onCompletion(@Nullable RecordMetadata stored, @Nullable Exception failure) {
            if (failure != null) {
                completeExceptionally(failure);
            } else if (open.decrementAndGet() == 0) {
                complete(null);
            }
        }
    }
}
