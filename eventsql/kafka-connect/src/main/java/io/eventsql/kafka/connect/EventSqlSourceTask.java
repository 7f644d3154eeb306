package io.eventsql.kafka.connect;

import io.eventsql.kafka.connect.PartitionPoller.Batch;
import io.eventsql.reader.ReadPosition;
import io.eventsql.reader.StreamPartition;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads some of the partitions of an {@link EventSqlSourceConnector}. Created and called by Connect, on one thread but for
 * {@link #stop}.
 */
public final class EventSqlSourceTask extends SourceTask {
    private static final Logger LOG = LoggerFactory.getLogger(EventSqlSourceTask.class);

    private final CountDownLatch stopped = new CountDownLatch(1);
    private volatile @Nullable PartitionPoller poller;
    private long pollIntervalNanos;

    /** Called by Connect. */
    public EventSqlSourceTask() {}

    @Override
    public String version() {
        return EventSqlSourceConnector.VERSION;
    }

    /** Continues where Connect's stored offsets say. Connects with the first poll. */
    @Override
    public void start(Map<String, String> properties) {
        ConnectorConfig config = ConnectorConfig.ofTask(properties);
        List<StreamPartition> partitions = config.taskPartitions();
        Map<StreamPartition, ReadPosition> positions = storedPositions(partitions);
        pollIntervalNanos = config.pollInterval().toNanos();
        poller = new PartitionPoller(config, positions, System::nanoTime);
        LOG.info("Reading {} of {}: {} continue, the others start", partitions, config.source(), positions.keySet());
    }

    private Map<StreamPartition, ReadPosition> storedPositions(List<StreamPartition> partitions) {
        Map<Map<String, String>, Map<String, Object>> stored = context.offsetStorageReader()
                .offsets(partitions.stream().map(SourcePartitions::toMap).toList());
        Map<StreamPartition, ReadPosition> positions = new HashMap<>();
        for (StreamPartition partition : partitions) {
            Map<String, Object> offset = stored.get(SourcePartitions.toMap(partition));
            if (offset != null) {
                positions.put(partition, SourcePartitions.position(offset));
            }
        }
        return positions;
    }

    /**
     * Returns the next records, those of a partition in the order of their offsets. Waits for a while if there are none.
     *
     * @return {@code null} if there are none
     */
    @Override
    public @Nullable List<SourceRecord> poll() throws InterruptedException {
        PartitionPoller current = poller;
        if (current == null || stopped.getCount() == 0) {
            return null;
        }
        try {
            Batch batch = current.poll();
            if (!batch.isAdvanced()) {
                awaitNextPoll();
            }
            return batch.records().isEmpty() ? null : batch.records();
        } catch (RetriableException e) {
            awaitNextPoll();
            throw e;
        } catch (RuntimeException e) {
            if (stopped.getCount() == 0) { // closed during the read
                return null;
            }
            throw e;
        }
    }

    private void awaitNextPoll() throws InterruptedException {
        boolean unused = stopped.await(pollIntervalNanos, TimeUnit.NANOSECONDS);
    }

    @Override
    public void stop() {
        stopped.countDown();
        PartitionPoller current = poller;
        if (current != null) {
            current.close();
        }
    }
}
