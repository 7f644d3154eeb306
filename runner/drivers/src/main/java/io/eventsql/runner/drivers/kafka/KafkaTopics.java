package io.eventsql.runner.drivers.kafka;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** Topics and their ends. */
final class KafkaTopics {
    private static final long KNOWN_NANOS = TimeUnit.SECONDS.toNanos(30);
    private static final long RETRY_MS = 10;

    private KafkaTopics() {}

    /**
     * Creates a topic and waits until its leaders answer. A producer that is faster gets NOT_LEADER_OR_FOLLOWER, and its
     * retries then fail with OUT_OF_ORDER_SEQUENCE_NUMBER until they expire (seen with 4.2.1 and several requests in
     * flight).
     */
    static void create(Admin admin, String name, int partitions) throws InterruptedException, ExecutionException {
        NewTopic topic = new NewTopic(name, Optional.of(partitions), Optional.empty());
        admin.createTopics(List.of(topic)).all().get();
        long deadline = System.nanoTime() + KNOWN_NANOS;
        while (true) {
            try {
                admin.describeTopics(List.of(name)).allTopicNames().get();
                ends(admin, name, partitions);
                return;
            } catch (ExecutionException e) {
                if (!(e.getCause() instanceof UnknownTopicOrPartitionException) || System.nanoTime() > deadline) {
                    throw e;
                }
                TimeUnit.MILLISECONDS.sleep(RETRY_MS);
            }
        }
    }

    /** Returns the end of each partition, from its leader. */
    static Map<TopicPartition, ListOffsetsResultInfo> ends(Admin admin, String topic, int partitions)
            throws InterruptedException, ExecutionException {
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        for (int partition = 0; partition < partitions; partition++) {
            asked.put(new TopicPartition(topic, partition), OffsetSpec.latest());
        }
        return admin.listOffsets(asked).all().get();
    }
}
