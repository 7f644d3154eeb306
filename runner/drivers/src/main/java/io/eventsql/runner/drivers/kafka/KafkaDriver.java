package io.eventsql.runner.drivers.kafka;

import io.eventsql.runner.driver.DeliveryListener;
import io.eventsql.runner.driver.Driver;
import io.eventsql.runner.driver.DriverSettings;
import io.eventsql.runner.driver.PublishTarget;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.AppInfoParser;

/** A connection to a Kafka cluster. Stores keys and values, but not headers. Thread-safe. */
final class KafkaDriver implements Driver {
    private static final long CONNECT_SECONDS = 10;

    private final String servers;
    private final String version;
    private final Admin admin;
    private final KafkaProducer<String, byte[]> producer;
    private final List<KafkaSubscription> subscriptions = new CopyOnWriteArrayList<>();

    private KafkaDriver(String servers, String version, Admin admin, KafkaProducer<String, byte[]> producer) {
        this.servers = servers;
        this.version = version;
        this.admin = admin;
        this.producer = producer;
    }

    /** @throws TimeoutException if no broker responds within 10 seconds */
    static KafkaDriver open(DriverSettings settings) throws InterruptedException, ExecutionException, TimeoutException {
        String servers = settings.requiredVariable("KAFKA_BOOTSTRAP_SERVERS");
        String known = settings.environment().get("KAFKA_VERSION");
        String version = known == null ? "KafkaClient " + AppInfoParser.getVersion() : "Kafka " + known;
        Admin admin = Admin.create(Map.of("bootstrap.servers", servers));
        try {
            admin.describeCluster().clusterId().get(CONNECT_SECONDS, TimeUnit.SECONDS);
            return new KafkaDriver(servers, version, admin, producer(servers));
        } catch (InterruptedException | ExecutionException | TimeoutException | RuntimeException e) {
            admin.close();
            throw e;
        }
    }

    private static KafkaProducer<String, byte[]> producer(String servers) {
        Map<String, Object> config = Map.of(
                ProducerConfig.BOOTSTRAP_SERVERS_CONFIG,
                servers,
                ProducerConfig.ACKS_CONFIG,
                "all",
                ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG,
                true);
        return new KafkaProducer<>(config, new StringSerializer(), new ByteArraySerializer());
    }

    @Override
    public String version() {
        return version;
    }

    @Override
    public void createStream(String name, int partitions) throws InterruptedException, ExecutionException {
        NewTopic topic = new NewTopic(name, Optional.of(partitions), Optional.empty());
        admin.createTopics(List.of(topic)).all().get();
    }

    @Override
    public PublishTarget publisher(String stream) {
        return new KafkaTarget(producer, stream);
    }

    @Override
    public AutoCloseable consume(String stream, String consumer, DeliveryListener listener) {
        KafkaSubscription subscription = new KafkaSubscription(servers, stream, stream + "." + consumer, listener);
        subscriptions.add(subscription);
        return () -> {
            subscriptions.remove(subscription);
            subscription.close();
        };
    }

    @Override
    public void clear(String stream) throws InterruptedException, ExecutionException {
        List<TopicPartition> partitions = admin.describeTopics(List.of(stream)).allTopicNames().get().values().stream()
                .flatMap(topic -> topic.partitions().stream())
                .map(partition -> new TopicPartition(stream, partition.partition()))
                .toList();
        Map<TopicPartition, ListOffsetsResultInfo> ends = admin.listOffsets(partitions.stream()
                        .collect(Collectors.toMap(partition -> partition, partition -> OffsetSpec.latest())))
                .all()
                .get();
        Map<TopicPartition, RecordsToDelete> all = ends.entrySet().stream()
                .collect(Collectors.toMap(
                        Map.Entry::getKey,
                        end -> RecordsToDelete.beforeOffset(end.getValue().offset())));
        admin.deleteRecords(all).all().get();
    }

    @Override
    public void close() {
        subscriptions.forEach(KafkaSubscription::close);
        producer.close();
        admin.close();
    }
}
