package io.eventsql.runner.queries;

import io.eventsql.Event;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A topic of Kafka with the events of the stream.
 *
 * @param bootstrapServers the broker
 */
record KafkaTopic(String bootstrapServers) {
    private static final int PARTITIONS = 4;

    /** Creates the topic with events whose sensors' clocks are a millisecond apart. */
    void publish(long events, long startMs, Positions positions) throws ExecutionException, InterruptedException {
        try (Admin admin =
                Admin.create(Map.<String, Object>of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers))) {
            admin.createTopics(List.of(new NewTopic(Positions.STREAM, PARTITIONS, (short) 1)))
                    .all()
                    .get();
        }
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                Map.of(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers),
                new ByteArraySerializer(),
                new ByteArraySerializer())) {
            Future<?> last = CompletableFuture.completedFuture(0);
            for (long number = 0; number < events; number++) {
                Event event = positions.next(number, startMs + number);
                last = producer.send(new ProducerRecord<>(
                        Positions.STREAM, String.valueOf(event.key()).getBytes(StandardCharsets.UTF_8), event.value()));
            }
            producer.flush();
            last.get(); // fails if the topic does not have the events
        }
    }

    /** Returns the options of the tables in {@code kafka/positions.sql}. */
    Map<String, String> options() {
        return Map.of("properties.bootstrap.servers", bootstrapServers, "scan.bounded.mode", "latest-offset");
    }
}
