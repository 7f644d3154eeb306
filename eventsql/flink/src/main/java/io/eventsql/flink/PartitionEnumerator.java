package io.eventsql.flink;

import io.eventsql.reader.EventReader;
import io.eventsql.reader.PageRequest;
import io.eventsql.reader.PartitionRange;
import io.eventsql.reader.ReadPosition;
import io.eventsql.reader.StreamPartition;
import io.eventsql.reader.StreamPosition;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.api.connector.source.SplitsAssignment;
import org.apache.flink.util.FlinkRuntimeException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds the partitions of a stream and assigns them to the readers. Queries run on the worker thread of the context, all
 * other methods on its coordinator thread.
 */
final class PartitionEnumerator implements SplitEnumerator<PartitionSplit, EnumeratorState> {
    private static final Logger LOG = LoggerFactory.getLogger(PartitionEnumerator.class);

    private final SourceSettings settings;
    private final SplitEnumeratorContext<PartitionSplit> context;
    private final List<PartitionSplit> unassigned;
    /** The readers that know that they get no further split. */
    private final Set<Integer> complete = new HashSet<>();

    /** Replaced, never changed: the worker thread reads it. */
    private volatile Set<StreamPartition> known;

    private volatile boolean isInitialised;

    /** Opened by the worker thread. */
    private volatile @Nullable EventReader reader;

    PartitionEnumerator(
            SourceSettings settings, SplitEnumeratorContext<PartitionSplit> context, EnumeratorState state) {
        this.settings = settings;
        this.context = context;
        this.isInitialised = state.isInitialised();
        this.known = state.known();
        this.unassigned = new ArrayList<>(state.unassigned());
    }

    @Override
    public void start() {
        long intervalMs = settings.discoveryInterval().toMillis();
        if (!settings.isBounded() && intervalMs > 0) {
            context.callAsync(this::discover, this::onDiscovered, 0, intervalMs);
        } else if (!isInitialised) {
            context.callAsync(this::discover, this::onDiscovered);
        }
    }

    /** Returns the splits of partitions that are not known yet. */
    private List<PartitionSplit> discover() {
        EventReader current = reader;
        if (current == null) {
            current = settings.openReader();
            reader = current;
        }
        return isInitialised ? findLater(current) : findInitial(current);
    }

    private List<PartitionSplit> findInitial(EventReader from) {
        Map<StreamPartition, ReadPosition> starts = from.starts(settings.stream(), settings.start());
        StreamPosition end = settings.end();
        Map<StreamPartition, Long> ends = end == null ? Map.of() : from.offsets(settings.stream(), end);
        List<PartitionSplit> splits = new ArrayList<>();
        starts.forEach((partition, position) -> splits.add(
                new PartitionSplit(partition, position, ends.getOrDefault(partition, PageRequest.UNBOUNDED))));
        return splits;
    }

    private List<PartitionSplit> findLater(EventReader from) {
        Set<StreamPartition> former = known;
        List<PartitionSplit> splits = new ArrayList<>();
        for (PartitionRange range : from.ranges(settings.stream())) {
            if (!former.contains(range.partition())) {
                splits.add(new PartitionSplit(
                        range.partition(), ReadPosition.at(range.logStart()), PageRequest.UNBOUNDED));
            }
        }
        return splits;
    }

    private void onDiscovered(@Nullable List<PartitionSplit> found, @Nullable Throwable failure) {
        if (found == null) {
            if (!isInitialised) {
                throw new FlinkRuntimeException("The partitions of " + settings + " could not be found", failure);
            }
            LOG.warn(
                    "Looking for new partitions of {} failed; retrying in {}",
                    settings,
                    settings.discoveryInterval(),
                    failure);
            return;
        }
        Set<StreamPartition> all = new HashSet<>(known);
        for (PartitionSplit split : found) {
            if (all.add(split.partition())) {
                unassigned.add(split);
                LOG.info("Found {}", split);
            }
        }
        known = Set.copyOf(all);
        isInitialised = true;
        assign();
    }

    private void assign() {
        Map<Integer, List<PartitionSplit>> assignment = new HashMap<>();
        for (PartitionSplit split : unassigned) {
            int owner = owner(split.partition());
            if (context.registeredReaders().containsKey(owner)) {
                assignment.computeIfAbsent(owner, subtask -> new ArrayList<>()).add(split);
            }
        }
        if (!assignment.isEmpty()) {
            assignment.values().forEach(unassigned::removeAll);
            context.assignSplits(new SplitsAssignment<>(assignment));
        }
        if (settings.isBounded() && isInitialised) {
            for (int subtask : context.registeredReaders().keySet()) {
                if (complete.add(subtask)) { // again, it would be an event to a task that may be finished
                    context.signalNoMoreSplits(subtask);
                }
            }
        }
    }

    private int owner(StreamPartition partition) {
        return (partition.shard() + partition.partition()) % context.currentParallelism();
    }

    @Override
    public void handleSplitRequest(int subtask, @Nullable String hostname) {
        // Splits are assigned without a request.
    }

    @Override
    public void addSplitsBack(List<PartitionSplit> splits, int subtask) {
        unassigned.addAll(splits);
        assign();
    }

    @Override
    public void addReader(int subtask) {
        complete.remove(subtask);
        assign();
    }

    @Override
    public EnumeratorState snapshotState(long checkpointId) {
        return new EnumeratorState(isInitialised, known, unassigned);
    }

    @Override
    public void close() {
        EventReader current = reader;
        if (current != null) {
            current.close();
        }
    }
}
