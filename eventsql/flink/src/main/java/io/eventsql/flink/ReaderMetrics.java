package io.eventsql.flink;

import io.eventsql.reader.LogEvent;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.MeterView;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.metrics.groups.SourceReaderMetricGroup;

/**
 * The metrics of a reader, in addition to those that Flink has for each source: rates of events and bytes, the number of events
 * without a value, and {@code pendingRecords}.
 */
final class ReaderMetrics {
    private final MeterView events;
    private final MeterView bytes;
    private final Counter withoutValue;
    /** By shard. Written by the thread that fetches, read by reporters. */
    private final Map<Integer, Long> pending = new ConcurrentHashMap<>();

    ReaderMetrics(SourceReaderMetricGroup group) {
        MetricGroup own = group.addGroup("eventsql");
        events = own.meter("eventsPerSecond", new MeterView(own.counter("events")));
        bytes = own.meter("bytesPerSecond", new MeterView(own.counter("bytes")));
        withoutValue = own.counter("eventsWithoutValue");
        group.setPendingRecordsGauge(
                () -> pending.values().stream().mapToLong(Long::longValue).sum());
    }

    /** Counts an event that is emitted. */
    void emitted(LogEvent event) {
        byte[] value = event.value();
        events.markEvent();
        if (value == null) {
            withoutValue.inc();
        } else {
            bytes.markEvent(value.length);
        }
    }

    /** Sets the number of a shard's events that are stored and not fetched yet. */
    void pendingEvents(int shard, long number) {
        pending.put(shard, number);
    }
}
