package io.eventsql.runner.drivers.kafka;

import io.eventsql.runner.driver.DeliveryListener;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverProvider;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.Guarantees;
import io.eventsql.runner.driver.PlainProgram;
import io.eventsql.runner.driver.PublishTarget;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * Apache Kafka: a topic per stream, idempotent producer, {@code acks=all}; a consumer is a group with one member.
 * Options: see {@link KafkaSettings}. Variables: {@code KAFKA_BOOTSTRAP_SERVERS}; {@code KAFKA_FSYNC} ({@code true} or {@code false}) and
 * {@code KAFKA_VERSION} describe the broker, which does not report them.
 */
public final class KafkaDriverProvider implements DriverProvider {
    private static final long CONNECT_SECONDS = 10;

    @Override
    public String name() {
        return "kafka";
    }

    @Override
    public Guarantees guarantees(Map<String, String> environment) {
        return new Guarantees(
                durability(environment), "per key (per partition)", "at least once to a group; published once");
    }

    private static String durability(Map<String, String> environment) {
        return switch (environment.getOrDefault("KAFKA_FSYNC", "")) {
            case "true" -> "flushed to disk (fsync) by all in-sync replicas";
            case "false" -> "in the page cache of all in-sync replicas, not flushed";
            default -> "in all in-sync replicas; flush policy unknown (set KAFKA_FSYNC)";
        };
    }

    /**
     * @throws IllegalArgumentException if a variable or an option is missing or unknown; the message names it
     * @throws TimeoutException if no broker responds within 10 seconds
     */
    @Override
    public Driver open(DriverSettings settings) throws InterruptedException, ExecutionException, TimeoutException {
        KafkaSettings clients = KafkaSettings.of(settings);
        String known = settings.environment().get("KAFKA_VERSION");
        String version = known == null ? "KafkaClient " + AppInfoParser.getVersion() : "Kafka " + known;
        Admin admin = Admin.create(Map.of("bootstrap.servers", clients.servers()));
        try {
            admin.describeCluster().clusterId().get(CONNECT_SECONDS, TimeUnit.SECONDS);
            return new KafkaDriver(clients, version, admin);
        } catch (InterruptedException | ExecutionException | TimeoutException | RuntimeException e) {
            admin.close();
            throw e;
        }
    }

    @Override
    public Optional<PlainProgram> plainProgram() {
        return Optional.of(new KafkaPlainProgram());
    }

    /** A connection to a Kafka cluster. Stores keys and values, but not headers. Thread-safe. */
    private static final class KafkaDriver implements Driver {
        private final KafkaSettings settings;
        private final String version;
        private final Admin admin;
        private final KafkaProducer<String, byte[]> producer;
        private final List<KafkaProducer<String, byte[]>> asyncProducers;

        KafkaDriver(KafkaSettings settings, String version, Admin admin) {
            this.settings = settings;
            this.version = version;
            this.admin = admin;
            this.producer = settings.newProducer();
            this.asyncProducers = settings.newAsyncProducers();
        }

        @Override
        public String version() {
            return version;
        }

        @Override
        public void createStream(String name, int partitions) throws InterruptedException, ExecutionException {
            KafkaTopics.create(admin, name, partitions);
        }

        @Override
        public PublishTarget publisher(String stream) {
            return new KafkaTarget(producer, asyncProducers, stream);
        }

        @Override
        public AutoCloseable consume(String stream, String consumer, DeliveryListener listener) {
            return new KafkaSubscription(settings.newConsumer(stream + "." + consumer), stream, listener);
        }

        @Override
        public void clear(String stream) throws InterruptedException, ExecutionException {
            int partitions = admin.describeTopics(List.of(stream)).allTopicNames().get().values().stream()
                    .mapToInt(topic -> topic.partitions().size())
                    .sum();
            Map<TopicPartition, ListOffsetsResultInfo> ends = KafkaTopics.ends(admin, stream, partitions);
            Map<TopicPartition, RecordsToDelete> all = ends.entrySet().stream()
                    .collect(Collectors.toMap(
                            Map.Entry::getKey,
                            end -> RecordsToDelete.beforeOffset(end.getValue().offset())));
            admin.deleteRecords(all).all().get();
        }

        @Override
        public void close() {
            producer.close();
            asyncProducers.forEach(KafkaProducer::close);
            admin.close();
        }
    }
}
