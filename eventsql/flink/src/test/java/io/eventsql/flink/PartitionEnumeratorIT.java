package io.eventsql.flink;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.StreamSpec;
import io.eventsql.reader.PageRequest;
import io.eventsql.reader.StreamPartition;
import io.eventsql.reader.StreamPosition;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.function.BiConsumer;
import java.util.stream.Collectors;
import org.apache.flink.api.connector.source.ReaderInfo;
import org.apache.flink.api.connector.source.SourceEvent;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.api.connector.source.SplitsAssignment;
import org.apache.flink.metrics.groups.SplitEnumeratorMetricGroup;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Which splits the enumerator finds, and who gets them. */
@Timeout(120)
class PartitionEnumeratorIT {
    private static final String STREAM = "assigned";
    private static final int PARTITIONS = 3;

    private static FlinkFixture fixture;

    @BeforeAll
    static void start() {
        fixture = new FlinkFixture();
        fixture.eventSql.createStream(StreamSpec.of(STREAM).withPartitions(PARTITIONS));
        fixture.publish(STREAM, 0, 200);
    }

    @AfterAll
    static void stop() {
        fixture.close();
    }

    /** Runs everything in the calling thread, periodic work when the test says so. */
    private static final class DirectContext implements SplitEnumeratorContext<PartitionSplit> {
        private final int parallelism;
        private final Map<Integer, ReaderInfo> readers = new TreeMap<>();
        final Map<Integer, List<PartitionSplit>> assigned = new TreeMap<>();
        final List<Integer> complete = new ArrayList<>();
        private Runnable periodic = () -> {};

        DirectContext(int parallelism) {
            this.parallelism = parallelism;
        }

        void register(PartitionEnumerator enumerator, int subtask) {
            readers.put(subtask, new ReaderInfo(subtask, "test"));
            enumerator.addReader(subtask);
        }

        Set<StreamPartition> assignedPartitions() {
            return assigned.values().stream()
                    .flatMap(Collection::stream)
                    .map(PartitionSplit::partition)
                    .collect(Collectors.toSet());
        }

        @Override
        public <T> void callAsync(Callable<T> work, BiConsumer<T, Throwable> handler) {
            @Nullable T result = null;
            @Nullable Throwable failure = null;
            try {
                result = work.call();
            } catch (Exception e) {
                failure = e;
            }
            handler.accept(result, failure);
        }

        @Override
        public <T> void callAsync(
                Callable<T> work, BiConsumer<T, Throwable> handler, long initialDelayMs, long periodMs) {
            periodic = () -> callAsync(work, handler);
            periodic.run();
        }

        @Override
        public void assignSplits(SplitsAssignment<PartitionSplit> assignment) {
            assignment
                    .assignment()
                    .forEach((subtask, splits) -> assigned.computeIfAbsent(subtask, key -> new ArrayList<>())
                            .addAll(splits));
        }

        @Override
        public void signalNoMoreSplits(int subtask) {
            complete.add(subtask);
        }

        @Override
        public int currentParallelism() {
            return parallelism;
        }

        @Override
        public Map<Integer, ReaderInfo> registeredReaders() {
            return readers;
        }

        @Override
        public SplitEnumeratorMetricGroup metricGroup() {
            return UnregisteredMetricsGroup.createSplitEnumeratorMetricGroup();
        }

        @Override
        public void sendEventToSourceReader(int subtask, SourceEvent event) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void runInCoordinatorThread(Runnable work) {
            work.run();
        }
    }

    private static PartitionEnumerator enumerator(
            DirectContext context, EnumeratorState state, StreamPosition start, @Nullable StreamPosition end) {
        PartitionEnumerator enumerator =
                new PartitionEnumerator(fixture.settings(STREAM, start, end, fixture.urls()), context, state);
        enumerator.start();
        return enumerator;
    }

    private static EnumeratorState initial() {
        return new EnumeratorState(false, Set.of(), List.of());
    }

    @Test
    void start_bounded_assignsEachPartitionOnceAndSaysThatItIsAll() {
        DirectContext context = new DirectContext(2);
        PartitionEnumerator enumerator = enumerator(context, initial(), StreamPosition.EARLIEST, StreamPosition.LATEST);
        try {
            assertThat(context.assigned).isEmpty();
            assertThat(enumerator.snapshotState(1).unassigned()).hasSize(2 * PARTITIONS);
            context.register(enumerator, 0);
            context.register(enumerator, 1);
            assertThat(context.assigned).containsOnlyKeys(0, 1);
            assertThat(context.assignedPartitions()).hasSize(2 * PARTITIONS);
            assertThat(context.assigned.values().stream().flatMap(Collection::stream))
                    .hasSize(2 * PARTITIONS)
                    .allMatch(split -> split.endOffset() < PageRequest.UNBOUNDED);
            // A reader may have finished: it gets no second event.
            assertThat(context.complete).containsExactly(0, 1);

            List<PartitionSplit> returned = context.assigned.remove(1);
            context.readers.remove(1);
            enumerator.addSplitsBack(returned, 1);
            assertThat(context.assigned).containsOnlyKeys(0);
            context.register(enumerator, 1);
            assertThat(context.assigned.get(1)).containsExactlyElementsOf(returned);
            assertThat(context.complete).containsExactly(0, 1, 1);
            assertThat(enumerator.snapshotState(2).unassigned()).isEmpty();
        } finally {
            enumerator.close();
        }
    }

    @Test
    void start_atLatest_hasTheEventsBefore() {
        DirectContext context = new DirectContext(1);
        PartitionEnumerator enumerator = enumerator(context, initial(), StreamPosition.LATEST, null);
        try {
            context.register(enumerator, 0);
            assertThat(context.assigned.get(0))
                    .hasSize(2 * PARTITIONS)
                    .allMatch(split ->
                            split.position().lastOffset() == split.position().offset() - 1)
                    .anyMatch(split -> split.position().lastPublishedAt() != null);
        } finally {
            enumerator.close();
        }
    }

    @Test
    void restored_partitionsOfANewShard_areReadFromTheirFirstEvent() {
        Set<StreamPartition> known = Set.of(
                new StreamPartition(STREAM, 0, 0),
                new StreamPartition(STREAM, 0, 1),
                new StreamPartition(STREAM, 0, 2));
        DirectContext context = new DirectContext(1);
        PartitionEnumerator enumerator =
                enumerator(context, new EnumeratorState(true, known, List.of()), StreamPosition.LATEST, null);
        try {
            context.register(enumerator, 0);
            assertThat(context.assigned.get(0))
                    .hasSize(PARTITIONS)
                    .allMatch(split -> split.partition().shard() == 1)
                    .allMatch(split -> split.position().offset() == 0)
                    .allMatch(split -> split.endOffset() == PageRequest.UNBOUNDED);
            context.periodic.run();
            assertThat(context.assigned.get(0)).hasSize(PARTITIONS);
            assertThat(enumerator.snapshotState(1).known()).hasSize(2 * PARTITIONS);
            assertThat(context.complete).isEmpty();
        } finally {
            enumerator.close();
        }
    }
}
