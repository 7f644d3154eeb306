package io.eventsql.flink.sink;

import java.io.IOException;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.groups.SinkWriterMetricGroup;
import org.jspecify.annotations.Nullable;

/** Turns the records of a writer into events that the database accepts, and counts them. Used by one thread. */
final class RecordEncoder<T> {
    private final EventSerializer<T> serializer;
    private final EventEncoder encoder;
    private final Counter events;
    private final Counter bytes;

    RecordEncoder(EventSerializer<T> serializer, EventEncoder encoder, SinkWriterMetricGroup metrics) {
        this.serializer = serializer;
        this.encoder = encoder;
        this.events = metrics.getNumRecordsSendCounter();
        this.bytes = metrics.getNumBytesSendCounter();
    }

    /**
     * Returns the event of a record; {@code null} if it has none.
     *
     * @throws IOException if the record cannot be stored
     */
    @Nullable
    EncodedEvent encode(T record) throws IOException {
        SinkEvent event = serializer.serialize(record);
        if (event == null) {
            return null;
        }
        EncodedEvent encoded = encoder.encode(event);
        events.inc();
        bytes.inc(encoded.bytes());
        return encoded;
    }
}
