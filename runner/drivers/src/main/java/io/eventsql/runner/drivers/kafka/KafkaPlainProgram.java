package io.eventsql.runner.drivers.kafka;

import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.event.NumberedValues;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.PlainLoop;
import io.eventsql.runner.driver.PlainProgram;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.errors.WakeupException;

/** Kafka's client alone: callers that wait for their futures, or a thread per producer that does not wait. */
final class KafkaPlainProgram implements PlainProgram {
    private static final int PARTITIONS = 10;
    private static final Duration POLL = Duration.ofMillis(100);

    @Override
    public Rates run(DriverSettings settings, Load load) throws Exception {
        KafkaSettings kafka = KafkaSettings.of(settings);
        String topic = "plain_" + BenchmarkEvent.randomRun();
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", kafka.servers()))) {
            KafkaTopics.create(admin, topic, PARTITIONS);
            Rates rates = run(kafka, topic, load);
            admin.deleteTopics(List.of(topic)).all().get();
            return rates;
        }
    }

    private static Rates run(KafkaSettings kafka, String topic, Load load) throws Exception {
        AtomicLong arrived = new AtomicLong();
        KafkaConsumer<String, byte[]> consumer = kafka.newConsumer(topic);
        Thread consuming = Thread.ofPlatform().start(() -> count(consumer, topic, arrived));
        List<KafkaProducer<String, byte[]>> producers =
                load.async() ? kafka.newAsyncProducers() : List.of(kafka.newProducer());
        try {
            NumberedValues values = new NumberedValues(BenchmarkEvent.randomRun(), load.eventBytes());
            Supplier<ProducerRecord<String, byte[]>> row = () -> new ProducerRecord<>(topic, values.next());
            List<PlainLoop.Caller> callers = load.async()
                    ? producers.stream()
                            .<PlainLoop.Caller>map(producer -> () -> send(producer, row, load.eventsPerCall()))
                            .toList()
                    : Collections.nCopies(
                            load.callers(), () -> publish(producers.getFirst(), row, load.eventsPerCall()));
            return PlainLoop.run(load, callers, () -> producers.forEach(KafkaProducer::flush), arrived::get);
        } finally {
            producers.forEach(KafkaProducer::close);
            consumer.wakeup();
            consuming.join();
        }
    }

    private static void send(
            KafkaProducer<String, byte[]> producer, Supplier<ProducerRecord<String, byte[]>> row, int count) {
        for (int i = 0; i < count; i++) {
            var unused = producer.send(row.get());
        }
    }

    private static void publish(
            KafkaProducer<String, byte[]> producer, Supplier<ProducerRecord<String, byte[]>> row, int count)
            throws Exception {
        List<Future<RecordMetadata>> answers = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            answers.add(producer.send(row.get()));
        }
        for (Future<RecordMetadata> answer : answers) {
            answer.get();
        }
    }

    private static void count(KafkaConsumer<String, byte[]> consumer, String topic, AtomicLong arrived) {
        try (consumer) {
            consumer.subscribe(List.of(topic));
            while (true) {
                arrived.addAndGet(consumer.poll(POLL).count());
                consumer.commitAsync();
            }
        } catch (WakeupException e) {
            // The program has ended.
        }
    }
}
