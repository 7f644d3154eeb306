package io.eventsql.flink;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.StreamSpec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.util.CloseableIterator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: a job's state counts each event once, whatever fails. Method: an unbounded job counts events by key in its state while
 * its tasks fail at random places after a checkpoint, and the database is killed between two of the failures.
 */
@Timeout(120)
class FailoverIT {
    private static final String SEED = "eventsql.test.seed";
    private static final int FIRST_PART = 300;
    private static final int EVENTS = 1_000;
    private static final int FAILURES = 4;

    /** Fails when it has mapped certain numbers of events, in all its attempts. */
    private static final class FailsAtTimes extends RichMapFunction<String, String>
            implements CheckpointListener, CheckpointedFunction {
        private static final long serialVersionUID = 1L;
        static final Set<Integer> FAILS_AT = ConcurrentHashMap.newKeySet();
        static final AtomicInteger MAPPED = new AtomicInteger();
        static final AtomicInteger RESTORED = new AtomicInteger();
        static final CountDownLatch CHECKPOINTED = new CountDownLatch(1);

        @Override
        public String map(String event) {
            if (FAILS_AT.remove(MAPPED.incrementAndGet())) {
                throw new IllegalStateException("fails for the test");
            }
            return event;
        }

        @Override
        public void notifyCheckpointComplete(long checkpointId) {
            if (MAPPED.get() >= FIRST_PART) {
                CHECKPOINTED.countDown();
            }
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) {
            // There is none.
        }

        @Override
        public void initializeState(FunctionInitializationContext context) {
            if (context.isRestored()) {
                RESTORED.incrementAndGet();
            }
        }
    }

    /** Counts how often each event arrives, in keyed state. */
    private static final class Occurrences extends RichMapFunction<String, String> {
        private static final long serialVersionUID = 1L;
        private transient ValueState<Integer> count;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.INT));
        }

        @Override
        public String map(String event) throws Exception {
            Integer former = count.value();
            count.update(former == null ? 1 : former + 1);
            return event + " #" + count.value();
        }
    }

    @Test
    void tasksAndDatabaseFail_eachEventIsCountedOnce() throws Exception {
        long seed = Long.getLong(SEED, System.nanoTime());
        System.out.println("FailoverIT: repeat with -D" + SEED + "=" + seed);
        new Random(seed).ints(FIRST_PART + 1, EVENTS).distinct().limit(FAILURES).forEach(FailsAtTimes.FAILS_AT::add);
        try (FlinkFixture fixture = new FlinkFixture()) {
            fixture.eventSql.createStream(
                    StreamSpec.of("failover").withPartitions(2).withSegmentSize(100));
            fixture.publish("failover", 0, FIRST_PART);
            List<String> read = new ArrayList<>();
            try (CloseableIterator<String> events = FlinkFixture.environment(2)
                    .fromSource(
                            fixture.source("failover", EventDeserializer.ofValue(new SimpleStringSchema()))
                                    .build(),
                            EventSqlSource.watermarks(Duration.ofSeconds(1)),
                            "failover")
                    .map(new FailsAtTimes())
                    .keyBy(event -> event)
                    .map(new Occurrences())
                    .executeAndCollect()) {
                assertThat(FailsAtTimes.CHECKPOINTED.await(1, TimeUnit.MINUTES)).isTrue();
                fixture.publish("failover", FIRST_PART, EVENTS / 2);
                FlinkFixture.server().crash();
                FlinkFixture.server().restart();
                fixture.publish("failover", EVENTS / 2, EVENTS);
                while (read.size() < EVENTS) {
                    read.add(events.next());
                }
            }
            assertThat(FailsAtTimes.FAILS_AT).isEmpty();
            assertThat(FailsAtTimes.RESTORED).hasPositiveValue();
            assertThat(read)
                    .containsExactlyInAnyOrderElementsOf(IntStream.range(0, EVENTS)
                            .mapToObj(n -> "{\"n\": " + n + "} #1")
                            .toList());
        }
    }
}
