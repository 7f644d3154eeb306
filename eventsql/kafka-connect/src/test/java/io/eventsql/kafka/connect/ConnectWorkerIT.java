package io.eventsql.kafka.connect;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.StreamSpec;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * The connector in a real worker against the broker configured in the environment. {@code scripts/run_driver_tests.bash
 * kafka-connect} starts one. {@code -Deventsql.test.workerKills} sets how often the worker is killed.
 */
@Timeout(1_800)
class ConnectWorkerIT {
    private static final String BROKER = "KAFKA_BOOTSTRAP_SERVERS";
    private static final String LIBRARIES = "KAFKA_CONNECT_LIBRARIES";
    private static final int KILLS = Integer.getInteger("eventsql.test.workerKills", 3);
    private static final int PARTITIONS = 3;
    /** How far the publisher runs ahead of the consumer. */
    private static final int AHEAD_MAX = 5_000;

    private static final Duration ARRIVE_TIMEOUT = Duration.ofMinutes(5);

    @TempDir
    private static Path folder;

    private static ConnectFixture fixture;
    private static ConnectWorker worker;
    private static Path secrets;

    @BeforeAll
    static void start() throws Exception {
        if (System.getenv(BROKER) == null || System.getenv(LIBRARIES) == null) {
            String why = "skipped: " + BROKER + " is not set (bash scripts/run_driver_tests.bash kafka-connect)";
            System.out.println(why);
            Assumptions.abort(why);
        }
        fixture = new ConnectFixture();
        secrets = folder.resolve("secrets.properties");
        Files.writeString(secrets, "password=" + fixture.properties("any").get("connection.password") + "\n");
        worker = new ConnectWorker(System.getenv(BROKER), System.getenv(LIBRARIES), folder);
    }

    @AfterAll
    static void stop() throws Exception {
        if (worker != null) {
            worker.close();
        }
        if (fixture != null) {
            fixture.close();
        }
    }

    /** Consumes a topic from its first record, committed records only. */
    private static KafkaConsumer<String, byte[]> consumer(String topic) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", System.getenv(BROKER));
        properties.put("isolation.level", "read_committed");
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        properties.put("allow.auto.create.topics", "false");
        KafkaConsumer<String, byte[]> consumer =
                new KafkaConsumer<>(properties, new StringDeserializer(), new ByteArrayDeserializer());
        await().atMost(ARRIVE_TIMEOUT)
                .ignoreExceptions()
                .until(() -> consumer.partitionsFor(topic).size() == PARTITIONS);
        List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                .map(info -> new TopicPartition(topic, info.partition()))
                .toList();
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        return consumer;
    }

    private static List<ConsumerRecord<String, byte[]>> consume(KafkaConsumer<String, byte[]> consumer, int count) {
        List<ConsumerRecord<String, byte[]>> records = new ArrayList<>();
        await().atMost(ARRIVE_TIMEOUT).until(() -> {
            consumer.poll(Duration.ofMillis(100)).forEach(records::add);
            return records.size() >= count;
        });
        return records;
    }

    private static String header(ConsumerRecord<String, byte[]> consumed, String name) {
        return new String(consumed.headers().lastHeader("eventsql." + name).value(), UTF_8);
    }

    private static String value(ConsumerRecord<String, byte[]> consumed) {
        return new String(consumed.value(), UTF_8);
    }

    private static void createConnector(String stream, String... options) {
        fixture.eventSql.createStream(StreamSpec.of(stream).withPartitions(PARTITIONS));
        Map<String, String> properties = new HashMap<>(fixture.properties(stream, options));
        properties.putAll(Map.of(
                "connector.class", EventSqlSourceConnector.class.getName(),
                "connection.password", "${file:" + secrets + ":password}",
                "tasks.max", "2",
                "exactly.once.support", "required",
                "position.headers", "true",
                "topic.partition", "same",
                "topic.creation.default.partitions", "" + PARTITIONS,
                "topic.creation.default.replication.factor", "1"));
        String json = properties.entrySet().stream()
                .map(entry -> "\"" + entry.getKey() + "\": \"" + entry.getValue() + "\"")
                .collect(Collectors.joining(", ", "{", "}"));
        worker.send("PUT", "/connectors/" + stream + "/config", json);
    }

    /** Each event is read once, and those of a partition in the order of their offsets, however often the worker dies. */
    @Test
    void worker_killedAtAnyMoment_eachEventIsCommittedOnceAndInOrder() throws Exception {
        long seed = Long.getLong("eventsql.test.seed", System.nanoTime());
        System.out.println("repeat with -Deventsql.test.seed=" + seed);
        Random random = new Random(seed);
        createConnector("killed", "batch.events.max", "20");
        AtomicBoolean isOver = new AtomicBoolean();
        AtomicInteger published = new AtomicInteger();
        AtomicInteger consumed = new AtomicInteger();
        Thread publisher = new Thread(() -> {
            while (!isOver.get()) {
                int from = published.get();
                if (from - consumed.get() < AHEAD_MAX) {
                    fixture.publish("killed", from, from + 50);
                    published.set(from + 50);
                } else {
                    LockSupport.parkNanos(1_000_000);
                }
            }
        });
        publisher.start();
        List<ConsumerRecord<String, byte[]>> records = new ArrayList<>();
        try (KafkaConsumer<String, byte[]> consumer = consumer("killed")) {
            for (int kill = 0; kill < KILLS; kill++) {
                records.addAll(consume(consumer, 1 + random.nextInt(AHEAD_MAX)));
                consumed.set(records.size());
                worker.kill();
                worker.start();
            }
            isOver.set(true);
            publisher.join();
            records.addAll(consume(consumer, published.get() - records.size()));
            consumer.poll(Duration.ofSeconds(2)).forEach(records::add); // what should not be there
        } finally {
            isOver.set(true);
        }
        Map<String, Long> next = new HashMap<>();
        Set<String> values = new HashSet<>();
        for (ConsumerRecord<String, byte[]> any : records) {
            String partition = header(any, "shard") + "/" + header(any, "partition");
            assertThat(Long.parseLong(header(any, "offset")))
                    .as("offset in %s", partition)
                    .isEqualTo(next.getOrDefault(partition, 0L));
            next.merge(partition, 1L, Long::sum);
            assertThat(any.partition()).isEqualTo(Integer.parseInt(header(any, "partition")));
            assertThat(any.key()).isEqualTo("k" + Integer.parseInt(value(any)) % 10);
            assertThat(values.add(value(any))).isTrue();
        }
        assertThat(records).hasSize(published.get());
        System.out.println("MEASURED " + KILLS + " kills, " + published.get() + " events, each once and in order");
    }

    @Test
    void tombstonesAndTimes_areThoseOfTheEvents_andOffsetsCanBeAltered() throws Exception {
        createConnector("altered");
        fixture.publish("altered", 0, 100);
        fixture.eventSql.publisher().publish("altered", Event.tombstone("k1"));
        try (KafkaConsumer<String, byte[]> consumer = consumer("altered")) {
            List<ConsumerRecord<String, byte[]>> records = consume(consumer, 101);
            assertThat(records)
                    .hasSize(101)
                    .filteredOn(consumed -> consumed.value() == null)
                    .extracting(ConsumerRecord::key)
                    .containsExactly("k1");
            assertThat(records)
                    .allSatisfy(consumed ->
                            assertThat(consumed.timestamp()).isCloseTo(System.currentTimeMillis(), within(600_000L)));
            ConsumerRecord<String, byte[]> any = records.get(0);
            assertThat(new String(any.headers().lastHeader("half").value(), UTF_8))
                    .isEqualTo("" + Integer.parseInt(value(any)) / 2);

            String partition = "altered/" + header(any, "shard") + "/" + header(any, "partition");
            assertThat(worker.get("/connectors/altered/offsets").body()).contains(partition);
            worker.send("PUT", "/connectors/altered/stop", "");
            worker.send(
                    "PATCH",
                    "/connectors/altered/offsets",
                    "{\"offsets\": [{\"partition\": {\"partition\": \"" + partition
                            + "\"}, \"offset\": {\"offset\": 2}}]}");
            worker.send("PUT", "/connectors/altered/resume", "");
            List<ConsumerRecord<String, byte[]>> again = consume(consumer, 1);
            assertThat(header(again.get(0), "offset")).isEqualTo("3");
        }
    }
}
