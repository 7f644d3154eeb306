package io.eventsql.kafka.connect;

import io.eventsql.reader.DatabaseUnavailableException;
import io.eventsql.reader.EventReader;
import io.eventsql.reader.EventReaderException;
import io.eventsql.reader.EventsMissingException;
import io.eventsql.reader.HistoryLostException;
import io.eventsql.reader.LogEvent;
import io.eventsql.reader.OffsetOutOfRangeException;
import io.eventsql.reader.PageRequest;
import io.eventsql.reader.PartitionPage;
import io.eventsql.reader.ReadPosition;
import io.eventsql.reader.StreamPartition;
import io.eventsql.reader.UndecodableEventException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.source.SourceRecord;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads the partitions of a task: one round trip for those of a stream on a shard. A shard that is unavailable does not keep
 * the others back. Not thread-safe, but for {@link #close}.
 */
final class PartitionPoller implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(PartitionPoller.class);

    private final ConnectorConfig config;
    private final RecordConverter converter;
    private final LongSupplier nanoTime;
    /** The partitions of each shard. */
    private final Map<Integer, List<StreamPartition>> shards = new TreeMap<>();
    /** A partition that was never read has no position until its shard responds. */
    private final Map<StreamPartition, ReadPosition> positions = new HashMap<>();

    /** The partitions whose position is where reading starts, which may be found anew. */
    private final Set<StreamPartition> starting = new HashSet<>();

    /** The partitions that a shard lacked: a cancelled growth has removed them, or a standby does not have them yet. */
    private final Set<StreamPartition> absent = new HashSet<>();

    private final Map<Integer, Outage> outages = new HashMap<>();
    /** What stops the task, once the records that were read before it are written. */
    private @Nullable ConnectException failure;

    private @Nullable EventReader reader;
    private boolean isClosed;

    /**
     * What a poll has read.
     *
     * @param isAdvanced whether there may be more; also true if events were read that have no record
     */
    record Batch(List<SourceRecord> records, boolean isAdvanced) {}

    /** @param positions where the partitions continue of which events were written before */
    PartitionPoller(ConnectorConfig config, Map<StreamPartition, ReadPosition> positions, LongSupplier nanoTime) {
        this.config = config;
        this.converter = new RecordConverter(config);
        this.nanoTime = nanoTime;
        this.positions.putAll(positions);
        for (StreamPartition partition : config.taskPartitions()) {
            shards.computeIfAbsent(partition.shard(), shard -> new ArrayList<>())
                    .add(partition);
        }
    }

    /**
     * Reads a page of each partition. What stops the task is thrown when the records before it were returned, so that the
     * source offsets say where it was stopped.
     *
     * @return no records if there are no new events with a record, or the shards that failed are not asked again yet
     * @throws RetriableException if a shard is unavailable, and the others have nothing new
     * @throws ConnectException if the task cannot continue; the message says what to do
     */
    Batch poll() {
        ConnectException former = failure;
        if (former != null) {
            throw former;
        }
        List<SourceRecord> records = new ArrayList<>();
        boolean isAdvanced = false;
        DatabaseUnavailableException unavailable = null;
        for (int shard : shards.keySet()) {
            Outage outage = outages.get(shard);
            long start = nanoTime.getAsLong();
            if (outage != null && !outage.isOver(start)) {
                continue;
            }
            try {
                isAdvanced |= readOnce(shard, records);
                if (outages.remove(shard) != null) {
                    LOG.info("Shard {} of {} is available again", shard, config.source());
                }
            } catch (DatabaseUnavailableException e) {
                unavailable = e;
                outages.put(shard, Outage.after(outage, start, nanoTime.getAsLong()));
            } catch (ConnectException e) {
                if (records.isEmpty()) {
                    throw e;
                }
                failure = e;
                return new Batch(records, true);
            }
        }
        if (unavailable != null && records.isEmpty()) {
            throw new RetriableException(unavailable.getMessage(), unavailable);
        }
        return new Batch(records, isAdvanced);
    }

    /** Reads a page of each partition of a shard, or handles what is in the way. Returns whether a position has changed. */
    private boolean readOnce(int shard, List<SourceRecord> records) {
        try {
            return readPages(shard, records);
        } catch (OffsetOutOfRangeException e) {
            continueAt(e);
        } catch (EventsMissingException e) {
            skip(e.partition(), e.offset(), e.nextOffset(), e);
        } catch (UndecodableEventException e) {
            skip(e.partition(), e.offset(), e.offset() + 1, e);
        } catch (HistoryLostException e) {
            throw new ConnectException(
                    e.getMessage() + ". Events were written to Kafka that the database no longer has. To read the new"
                            + " history, stop the connector, alter or reset its offsets, and resume it",
                    e);
        } catch (DatabaseUnavailableException e) {
            throw e;
        } catch (EventReaderException e) {
            throw new ConnectException(e.getMessage(), e);
        }
        return true;
    }

    private boolean readPages(int shard, List<SourceRecord> records) {
        EventReader current = reader();
        boolean isAdvanced = resolveStarts(current, shard);
        List<PageRequest> requests = new ArrayList<>();
        for (StreamPartition partition : shards.getOrDefault(shard, List.of())) {
            ReadPosition position = positions.get(partition);
            if (position != null) { // otherwise it is absent
                requests.add(new PageRequest(partition, position));
            }
        }
        for (PartitionPage page : current.read(requests)) {
            String incarnation = page.next().incarnation();
            for (LogEvent event : page.events()) {
                SourceRecord converted = converter.convert(event, incarnation);
                if (converted != null) {
                    records.add(converted);
                }
            }
            ReadPosition former = positions.put(page.partition(), page.next());
            if (former == null || former.offset() < page.next().offset()) {
                starting.remove(page.partition());
                isAdvanced = true;
            }
        }
        return isAdvanced;
    }

    private synchronized EventReader reader() {
        if (isClosed) {
            throw new ConnectException("The task was stopped");
        }
        EventReader current = reader;
        if (current == null) {
            current = config.openReader();
            reader = current;
        }
        return current;
    }

    /** Finds where partitions start that have no position. Returns whether it found any. */
    private boolean resolveStarts(EventReader current, int shard) {
        boolean isAdvanced = false;
        Map<String, List<StreamPartition>> unresolved = shards.getOrDefault(shard, List.of()).stream()
                .filter(partition -> !positions.containsKey(partition))
                .collect(Collectors.groupingBy(StreamPartition::stream));
        for (Map.Entry<String, List<StreamPartition>> entry : unresolved.entrySet()) {
            String stream = entry.getKey();
            Map<StreamPartition, Long> offsets = current.offsets(stream, shard, config.start());
            if (offsets.isEmpty()) {
                throw new ConnectException("There is no stream " + stream + " on shard " + shard
                        + "; it was deleted. Restart the connector");
            }
            for (StreamPartition partition : entry.getValue()) {
                Long offset = offsets.get(partition);
                if (offset != null) {
                    positions.put(partition, ReadPosition.at(offset));
                    starting.add(partition);
                    isAdvanced = true;
                } else if (absent.add(partition)) {
                    LOG.warn("There is no {}; reading the others and asking for it again", partition);
                }
            }
        }
        return isAdvanced;
    }

    private void continueAt(OffsetOutOfRangeException e) {
        if (starting.remove(e.partition())) { // retention was faster than the first read
            positions.remove(e.partition());
            return;
        }
        if (e.offset() > e.head()) {
            throw new ConnectException(
                    e.getMessage() + ". Stop the connector, alter or reset its offsets, and resume it", e);
        }
        if (!config.continuesOutOfRange()) {
            throw new ConnectException(
                    e.getMessage() + ". To continue without the lost events, set " + ConnectorConfig.OUT_OF_RANGE
                            + " to earliest",
                    e);
        }
        LOG.error("{}. Continuing at offset {}", e.getMessage(), e.logStart());
        positions.put(e.partition(), ReadPosition.at(e.logStart()));
    }

    private void skip(StreamPartition partition, long from, long next, EventReaderException e) {
        if (!config.skipsUnreadable()) {
            throw new ConnectException(
                    e.getMessage() + ". To continue without these events, set " + ConnectorConfig.UNREADABLE_EVENTS
                            + " to skip",
                    e);
        }
        LOG.error("{}. Skipping [{}, {}) of {}", e.getMessage(), from, next, partition);
        positions.put(partition, ReadPosition.at(next));
    }

    /** Closes the connections. A read in progress ends first. Idempotent. */
    @Override
    public synchronized void close() {
        isClosed = true;
        EventReader current = reader;
        if (current != null) {
            current.close();
        }
    }
}
