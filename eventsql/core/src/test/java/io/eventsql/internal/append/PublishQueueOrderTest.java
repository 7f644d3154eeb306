package io.eventsql.internal.append;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.internal.append.TestCalls.Call;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The queue without any database, with random calls and many threads. The seed is printed on failure; {@code
 * -Deventsql.test.seed} sets it, {@code -Deventsql.test.queueCalls} makes it longer (20,000 calls by default for each
 * number of lanes).
 */
@Timeout(60)
class PublishQueueOrderTest {
    private final List<Thread> threads = new ArrayList<>();

    @AfterEach
    void endThreads() {
        threads.forEach(Thread::interrupt);
    }

    /**
     * Goal: calls of a partition are taken in the order in which they were put, and never two batches of one partition
     * are under way at the same time, whatever kinds of calls come together, and nothing is left lying. Method: one
     * thread puts calls of random kinds, so that the order of the calls is known, now slowly, now in bursts; as many
     * threads as lanes take batches and check each partition against a model while the batch is under way.
     */
    @ParameterizedTest
    @CsvSource({"1", "2", "3", "4"})
    void finishAndTake_manyThreads_partitionsKeepTheirOrder(int lanes) throws Exception {
        long seed = Long.getLong("eventsql.test.seed", System.nanoTime());
        int total = Integer.getInteger("eventsql.test.queueCalls", 20_000);
        Random random = new Random(seed);
        int bufferEvents = 3 * PendingCalls.SHARED_ABOVE_EVENTS;
        PublishQueue queue = new PublishQueue(
                new PendingCalls(lanes, 400, 300L * TestCalls.EVENT_BYTES),
                new CommitPace(TimeUnit.MILLISECONDS.toNanos(1)),
                (long) bufferEvents * TestCalls.EVENT_BYTES,
                TestCalls.routing(TestCalls::map));
        Model model = new Model();
        CountDownLatch ended = new CountDownLatch(lanes);
        for (int thread = 0; thread < lanes; thread++) {
            threads.add(Thread.ofPlatform().start(() -> {
                try {
                    for (Batch batch = queue.finishAndTake(null); batch != null; batch = queue.finishAndTake(batch)) {
                        model.begin(batch);
                        LockSupport.parkNanos(batch.number() % 4 * 100_000); // some appends take longer
                        model.end(batch);
                    }
                } catch (Throwable e) {
                    model.failed(e);
                    queue.close(); // and so the test ends
                } finally {
                    ended.countDown();
                }
            }));
        }
        boolean slow = true;
        for (int i = 0; i < total && ended.getCount() == lanes; i++) {
            slow = random.nextInt(500) == 0 ? !slow : slow;
            int kind = random.nextInt(1_000);
            int events = 1 + random.nextInt(4);
            int[] partitions = kind < 300
                    ? PublishCall.ANY_PARTITION
                    : random.ints(events, 0, Model.PARTITIONS).toArray();
            if (kind >= 300 && kind < 997) {
                Arrays.fill(partitions, partitions[0]);
            }
            Call call = new Call(TestCalls.STREAM, events, partitions, System.nanoTime() + TestCalls.FAR);
            model.put(call.call, partitions);
            queue.put(call.call);
            if (slow) {
                Thread.yield();
            }
        }
        queue.close();
        boolean allEnded = ended.await(120, TimeUnit.SECONDS);
        model.assertAllTaken(total, seed);
        assertThat(allEnded).as("threads end, seed %d", seed).isTrue();
        assertThat(queue.bufferedBytes()).isZero();
    }

    /** Checks that the calls of each partition are taken in the order they were put, by one batch at a time. */
    private static final class Model {
        static final int PARTITIONS = TestCalls.STREAM.partitions();

        private final List<Deque<PublishCall>> expected = new ArrayList<>();
        private final AtomicReferenceArray<Batch> holder = new AtomicReferenceArray<>(PARTITIONS);
        private final List<Throwable> failures = new ArrayList<>();
        private int taken;

        Model() {
            for (int partition = 0; partition < PARTITIONS; partition++) {
                expected.add(new ArrayDeque<>());
            }
        }

        synchronized void put(PublishCall call, int[] partitions) {
            IntStream.of(partitions).distinct().forEach(p -> expected.get(p).add(call));
        }

        void begin(Batch batch) {
            for (int partition : partitions(batch)) {
                if (!holder.compareAndSet(partition, null, batch)) {
                    throw new AssertionError("two batches of partition " + partition + " under way");
                }
            }
            synchronized (this) {
                for (PublishCall call : batch.calls()) {
                    taken++;
                    if (!call.hasNoKeys()) {
                        IntStream.range(0, call.events().size())
                                .map(call::partition)
                                .distinct()
                                .forEach(p -> requireFirst(p, call));
                    }
                }
            }
        }

        private void requireFirst(int partition, PublishCall call) {
            if (expected.get(partition).poll() != call) {
                throw new AssertionError("a call of partition " + partition + " was overtaken");
            }
        }

        void end(Batch batch) {
            for (int partition : partitions(batch)) {
                holder.set(partition, null);
            }
        }

        private static Set<Integer> partitions(Batch batch) {
            Set<Integer> partitions = new HashSet<>();
            for (PublishCall call : batch.calls()) {
                for (int i = 0; i < call.events().size(); i++) {
                    partitions.add(batch.partition(call, i));
                }
            }
            return partitions;
        }

        synchronized void failed(Throwable e) {
            failures.add(e);
        }

        synchronized void assertAllTaken(int total, long seed) {
            assertThat(failures).as("seed %d", seed).isEmpty();
            assertThat(taken).as("seed %d", seed).isEqualTo(total);
            assertThat(expected).as("seed %d", seed).allMatch(Deque::isEmpty);
        }
    }
}
