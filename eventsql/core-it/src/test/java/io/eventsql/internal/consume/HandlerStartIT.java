package io.eventsql.internal.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.PartitionState;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.wake.WakeUp;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Goal: a partition for whose handler no thread can be started is released, and handled when there is a thread again.
 * Method: a pipeline whose executor fails some times, as with too little memory for a thread.
 */
class HandlerStartIT {
    private static final int FAILURES = 2;

    private static TestCluster cluster;
    private static EventSql eventSql;

    @BeforeAll
    static void open() {
        cluster = TestCluster.ofShards(1);
        eventSql = cluster.open();
    }

    @AfterAll
    static void close() {
        cluster.close();
    }

    /** Starts a thread for each task, apart from some. */
    private static void start(Runnable task, int number, int firstFailure, boolean outOfMemory) {
        boolean fails = number >= firstFailure && number < firstFailure + FAILURES;
        if (fails && outOfMemory) {
            throw new OutOfMemoryError("unable to create a thread, thrown by the test");
        }
        if (fails) {
            throw new RejectedExecutionException("thrown by the test");
        }
        Thread.ofVirtual().start(task);
    }

    @ParameterizedTest(name = "outOfMemory {0}, first failure {1}, keyConcurrency {2}")
    @CsvSource({"true,1,1", "false,1,1", "true,1,8", "true,2,8"})
    void start_fails_partitionIsReleasedAndHandledLater(boolean outOfMemory, int firstFailure, int keyConcurrency)
            throws Exception {
        StreamSpec stream = StreamSpec.of(TestStreams.newName()).withPartitions(1);
        eventSql.createStream(stream);
        Settings settings =
                Settings.builder().pollInterval(Duration.ofMillis(100)).build();
        ConsumerSpec spec = ConsumerSpec.of(stream.name(), "c").withKeyConcurrency(keyConcurrency);
        Handled handled = new Handled();
        List<String> revoked = new CopyOnWriteArrayList<>();
        Listeners listeners = new Listeners(List.of(new ConsumerListener() {
            @Override
            public void partitionRevoked(ConsumerPartition partition, Reason reason) {
                revoked.add(reason.name());
            }
        }));
        AtomicInteger starts = new AtomicInteger();
        HandlerThreads threads =
                new HandlerThreads(spec, task -> start(task, starts.incrementAndGet(), firstFailure, outOfMemory));

        Shards shards = Shards.open(cluster.dataSources(), List.of(), settings);
        WakeUp wakeUp = new WakeUp(shards, settings);
        var shard = shards.get(0);
        ShardThreads shardThreads =
                ShardThreads.start(shard, null, settings, wakeUp, listeners, new ShardBarriers(shards, wakeUp));
        CloseDeadline deadline = CloseDeadline.after(Duration.ofSeconds(60));
        try {
            int streamId = shard.streams().ensure(stream);
            int consumerId = shard.require()
                    .transaction(c -> shard.tables()
                            .consumers()
                            .register(c, streamId, stream.name(), spec.name(), spec.startPosition()));
            PipelineContext context = new PipelineContext(
                    HandlerCall.ofSingle(handled::add),
                    null,
                    threads,
                    new FetchBudget(spec),
                    new CloseSignal(),
                    new SegmentKeeper(),
                    wakeUp,
                    listeners);
            ShardPipeline pipeline = ShardPipeline.start(
                    context,
                    shard,
                    shardThreads,
                    new Membership(
                            UUID.randomUUID(),
                            "test",
                            shard.number(),
                            shard.incarnation(),
                            consumerId,
                            streamId,
                            spec,
                            stream));
            IntStream.range(0, 20)
                    .forEach(i -> eventSql.publisher().publish(stream.name(), Event.ofText("key", "value" + i)));
            handled.awaitSize(20);
            await().atMost(Duration.ofSeconds(120))
                    .until(() -> eventSql.consumer(stream.name(), "c").state().stream()
                            .mapToLong(PartitionState::lag)
                            .allMatch(lag -> lag == 0));
            handled.assertOnceAndInOrder();
            assertThat(starts.get()).isGreaterThan(FAILURES);
            if (firstFailure == 1) { // otherwise a lane's thread fails, whose events the partition's thread handles
                assertThat(revoked).contains("RELEASED");
            }
            pipeline.beginClose();
            assertThat(pipeline.awaitClosed(deadline)).isTrue();
        } finally {
            shardThreads.close(deadline);
            wakeUp.close(deadline.endNanos());
            shards.close(deadline.endNanos());
        }
    }
}
