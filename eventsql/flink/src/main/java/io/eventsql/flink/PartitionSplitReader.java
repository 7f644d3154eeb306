package io.eventsql.flink;

import io.eventsql.reader.DatabaseUnavailableException;
import io.eventsql.reader.EventReader;
import io.eventsql.reader.LogEvent;
import io.eventsql.reader.PageRequest;
import io.eventsql.reader.PartitionPage;
import io.eventsql.reader.PartitionRange;
import io.eventsql.reader.ReadPosition;
import io.eventsql.reader.StreamPartition;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.apache.flink.connector.base.source.reader.RecordsBySplits;
import org.apache.flink.connector.base.source.reader.RecordsWithSplitIds;
import org.apache.flink.connector.base.source.reader.splitreader.SplitReader;
import org.apache.flink.connector.base.source.reader.splitreader.SplitsChange;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Fetches the events of a reader's splits: one round trip for all splits of a shard. A shard that is unavailable does not keep
 * the others back. Used by one thread, but for {@link #wakeUp}.
 */
final class PartitionSplitReader implements SplitReader<FetchedEvent, PartitionSplit> {
    private static final Logger LOG = LoggerFactory.getLogger(PartitionSplitReader.class);
    private static final Duration LAG_INTERVAL = Duration.ofSeconds(10);
    /** An attempt that waits for an unavailable shard delays the other shards: how many times as long they have after it. */
    private static final int RETRY_DELAY_FACTOR = 10;
    /** How many attempts there are at least before the job fails. */
    private static final int ATTEMPTS_MIN = 4;

    private final SourceSettings settings;
    private final ReaderMetrics metrics;
    private final LongSupplier nanoTime;
    private final Map<String, PartitionSplit> splits = new LinkedHashMap<>();
    private final Set<String> paused = new HashSet<>();
    private final Map<Integer, Outage> outages = new HashMap<>();
    /** By shard, when its lag was read. */
    private final Map<Integer, Long> lagReadAt = new HashMap<>();
    /** Given by {@link #wakeUp}: ends a wait, also one that begins later. */
    private final Semaphore wakeUps = new Semaphore(0);

    private @Nullable EventReader reader;

    /** Since when a shard is unavailable, and when to ask it again, by {@code nanoTime}. */
    private record Outage(long since, long retryAt) {}

    PartitionSplitReader(SourceSettings settings, ReaderMetrics metrics, LongSupplier nanoTime) {
        this.settings = settings;
        this.metrics = metrics;
        this.nanoTime = nanoTime;
    }

    @Override
    public RecordsWithSplitIds<FetchedEvent> fetch() throws IOException {
        RecordsBySplits.Builder<FetchedEvent> records = new RecordsBySplits.Builder<>();
        boolean isAdvanced = finishSplits(records);
        for (Map.Entry<Integer, List<PageRequest>> ofShard : requestsByShard().entrySet()) {
            isAdvanced |= fetch(ofShard.getKey(), ofShard.getValue(), records);
        }
        isAdvanced |= finishSplits(records);
        if (!isAdvanced) {
            awaitNextPoll();
        }
        return records.build();
    }

    private Map<Integer, List<PageRequest>> requestsByShard() {
        Map<Integer, List<PageRequest>> requests = new TreeMap<>();
        splits.forEach((id, split) -> {
            if (!paused.contains(id)) {
                requests.computeIfAbsent(split.partition().shard(), shard -> new ArrayList<>())
                        .add(new PageRequest(split.partition(), split.position(), split.endOffset()));
            }
        });
        return requests;
    }

    private boolean fetch(int shard, List<PageRequest> requests, RecordsBySplits.Builder<FetchedEvent> records)
            throws IOException {
        boolean isAdvanced = false;
        long start = nanoTime.getAsLong();
        Outage outage = outages.get(shard);
        if (outage != null && start < outage.retryAt()) {
            return false;
        }
        try {
            EventReader current = reader();
            for (PartitionPage page : current.read(requests)) {
                isAdvanced |= add(page, records);
            }
            readLag(current, shard);
            outages.remove(shard);
        } catch (DatabaseUnavailableException e) {
            tolerate(shard, start, e);
        }
        return isAdvanced;
    }

    private EventReader reader() {
        EventReader current = reader;
        if (current == null) {
            current = settings.openReader();
            reader = current;
        }
        return current;
    }

    private boolean add(PartitionPage page, RecordsBySplits.Builder<FetchedEvent> records) {
        StreamPartition partition = page.partition();
        String id = new PartitionSplit(partition, page.next(), 0).splitId();
        PartitionSplit former = splits.get(id);
        if (former == null) {
            return false;
        }
        String incarnation = page.next().incarnation();
        for (LogEvent event : page.events()) {
            records.add(id, new FetchedEvent(event, incarnation));
        }
        splits.put(id, new PartitionSplit(partition, page.next(), former.endOffset()));
        return page.next().offset() > former.position().offset();
    }

    private void tolerate(int shard, long start, DatabaseUnavailableException e) throws IOException {
        long now = nanoTime.getAsLong();
        long timeout = settings.failureTimeout().toNanos();
        Outage former = outages.get(shard);
        long since = former == null ? start : former.since();
        if (now - since >= timeout) {
            throw new IOException(
                    "Shard " + shard + " of " + settings + " was unavailable for " + settings.failureTimeout(), e);
        }
        if (former == null) {
            LOG.warn("Shard {} of {} is unavailable; retrying for {}", shard, settings, settings.failureTimeout(), e);
        }
        long delay = Math.min(RETRY_DELAY_FACTOR * (now - start), timeout / ATTEMPTS_MIN);
        outages.put(shard, new Outage(since, now + delay));
    }

    /** Now and then finds out how many events of a shard are stored and not fetched yet. */
    private void readLag(EventReader current, int shard) {
        long now = nanoTime.getAsLong();
        if (now - lagReadAt.computeIfAbsent(shard, first -> now) < LAG_INTERVAL.toNanos()) {
            return;
        }
        lagReadAt.put(shard, now);
        Map<StreamPartition, ReadPosition> positions = new HashMap<>();
        splits.values().forEach(split -> positions.put(split.partition(), split.position()));
        long pending = 0;
        for (PartitionRange range : current.ranges(settings.stream(), shard)) {
            ReadPosition position = positions.get(range.partition());
            pending += position == null ? 0 : Math.max(0, range.head() - position.offset());
        }
        metrics.pendingEvents(shard, pending);
    }

    private boolean finishSplits(RecordsBySplits.Builder<FetchedEvent> records) {
        List<String> finished = splits.values().stream()
                .filter(PartitionSplit::isFinished)
                .map(PartitionSplit::splitId)
                .toList();
        finished.forEach(splits::remove);
        records.addFinishedSplits(finished);
        return !finished.isEmpty();
    }

    private void awaitNextPoll() {
        try {
            boolean isWoken =
                    wakeUps.tryAcquire(settings.reader().pollInterval().toNanos(), TimeUnit.NANOSECONDS);
            if (isWoken) {
                wakeUps.drainPermits();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the fetcher is being closed
        }
    }

    @Override
    public void handleSplitsChanges(SplitsChange<PartitionSplit> change) {
        for (PartitionSplit split : change.splits()) {
            splits.put(split.splitId(), split);
        }
    }

    @Override
    public void pauseOrResumeSplits(Collection<PartitionSplit> toPause, Collection<PartitionSplit> toResume) {
        toPause.forEach(split -> paused.add(split.splitId()));
        toResume.forEach(split -> paused.remove(split.splitId()));
    }

    @Override
    public void wakeUp() {
        wakeUps.release();
    }

    @Override
    public void close() {
        EventReader current = reader;
        if (current != null) {
            current.close();
        }
    }
}
