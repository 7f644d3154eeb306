package io.eventsql.reader;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Reads all partitions of a stream, each in the order of its offsets. It knows the partitions that existed when it was opened.
 * It has nothing to be closed. Not thread-safe.
 */
public final class StreamCursor {
    /**
     * While others have events, a shard that does not respond is left out for this multiple of the time for which it was waited for:
     * so waiting takes a tenth of the time.
     */
    private static final int RETRY_FACTOR = 9;

    private final EventReader reader;
    private final Duration pollInterval;
    private final Map<StreamPartition, Long> ends;
    private final Map<StreamPartition, ReadPosition> positions;
    /** The shards that did not respond, and when each is asked again although others have events (nano time). */
    private final Map<Integer, Long> outages = new HashMap<>();
    /** What the last read could not read of one shard while it had events of another. */
    private @Nullable EventReaderException failure;

    private StreamCursor(
            EventReader reader,
            Duration pollInterval,
            Map<StreamPartition, Long> ends,
            Map<StreamPartition, ReadPosition> positions) {
        this.reader = reader;
        this.pollInterval = pollInterval;
        this.ends = ends;
        this.positions = positions;
    }

    static StreamCursor open(EventReader reader, CursorSpec spec, Duration pollInterval) {
        Map<StreamPartition, ReadPosition> positions = new TreeMap<>(reader.starts(spec.stream(), spec.start()));
        positions.replaceAll((partition, start) -> spec.positions().getOrDefault(partition, start));
        StreamPosition end = spec.end();
        return new StreamCursor(
                reader, pollInterval, end == null ? Map.of() : reader.offsets(spec.stream(), end), positions);
    }

    /**
     * Returns the next events: a page of each partition that has any, by partition and offset. Waits until there are some,
     * the cursor is finished, or the time has passed. A shard that does not respond does not keep the events of the others back:
     * while these have some, waiting for it takes at most a tenth of the time.
     *
     * @param timeout how long to wait; zero asks the databases once
     * @return no events if the time has passed, or the cursor is finished
     * @throws DatabaseUnavailableException if a shard does not respond, and the others have nothing new. Any other exception of
     *     {@link EventReader#read(List)} is thrown once the events of the other shards were returned, if these have some. It leaves the
     *     positions as they are: the call may be repeated, after {@link #seek} where events cannot be read.
     */
    public List<LogEvent> poll(Duration timeout) throws InterruptedException {
        EventReaderException former = failure;
        if (former != null) {
            failure = null;
            throw former;
        }
        long start = System.nanoTime();
        while (true) {
            List<LogEvent> events = new ArrayList<>();
            boolean isAdvanced = readShards(events);
            if (!events.isEmpty() || isFinished()) {
                return events;
            }
            if (isAdvanced) { // past what compaction has removed
                continue;
            }
            long left = timeout.toNanos() - (System.nanoTime() - start);
            if (left <= 0) {
                return events;
            }
            TimeUnit.NANOSECONDS.sleep(Math.min(left, pollInterval.toNanos()));
        }
    }

    /** Reads a page of each partition. One shard that fails does not keep the events of the others back. */
    private boolean readShards(List<LogEvent> events) {
        EventReaderException now = null;
        List<PartitionPage> pages = new ArrayList<>();
        for (Map.Entry<Integer, List<PageRequest>> requests : unavailableLast(requestsByShard())) {
            int shard = requests.getKey();
            long start = System.nanoTime();
            boolean hasEvents = pages.stream().anyMatch(page -> !page.events().isEmpty());
            if (hasEvents && isLeftOut(shard, start)) {
                continue;
            }
            try {
                pages.addAll(reader.read(requests.getValue()));
                outages.remove(shard);
            } catch (DatabaseUnavailableException e) {
                now = e;
                long end = System.nanoTime();
                outages.put(shard, end + RETRY_FACTOR * (end - start));
            } catch (EventReaderException e) {
                now = e;
                failure = e;
            }
        }
        // After the last read: another exception, such as that of a reader that was closed, must not pass events by.
        boolean isAdvanced = false;
        for (PartitionPage page : pages) {
            ReadPosition former = positions.put(page.partition(), page.next());
            isAdvanced |= former != null && former.offset() < page.next().offset();
            events.addAll(page.events());
        }
        if (now != null && events.isEmpty()) {
            failure = null;
            throw now;
        }
        return isAdvanced;
    }

    private List<Map.Entry<Integer, List<PageRequest>>> unavailableLast(Map<Integer, List<PageRequest>> requests) {
        return requests.entrySet().stream()
                .sorted(Comparator.comparing(entry -> outages.containsKey(entry.getKey())))
                .toList();
    }

    private boolean isLeftOut(int shard, long nowNanos) {
        Long retryNanos = outages.get(shard);
        return retryNanos != null && nowNanos - retryNanos < 0;
    }

    private Map<Integer, List<PageRequest>> requestsByShard() {
        Map<Integer, List<PageRequest>> requests = new TreeMap<>();
        positions.forEach((partition, position) -> {
            long end = ends.getOrDefault(partition, PageRequest.UNBOUNDED);
            if (position.offset() < end) {
                requests.computeIfAbsent(partition.shard(), shard -> new ArrayList<>())
                        .add(new PageRequest(partition, position, end));
            }
        });
        return requests;
    }

    /** Returns whether everything up to the end was returned; never, if there is no end. */
    public boolean isFinished() {
        return requestsByShard().isEmpty();
    }

    /** Returns where each partition continues after the events returned so far. */
    public Map<StreamPartition, ReadPosition> positions() {
        return Collections.unmodifiableMap(new TreeMap<>(positions));
    }

    /**
     * Moves a partition to another offset, which the next read checks.
     *
     * @throws UnknownStreamException if it is none of the cursor's partitions
     */
    public void seek(StreamPartition partition, long offset) {
        @Nullable ReadPosition former = positions.replace(partition, ReadPosition.at(offset));
        if (former == null) {
            throw new UnknownStreamException(partition);
        }
        failure = null; // if it was that of another partition, the next read fails in the same way
    }
}
