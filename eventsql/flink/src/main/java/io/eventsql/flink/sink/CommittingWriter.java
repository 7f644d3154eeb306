package io.eventsql.flink.sink;

import java.io.IOException;
import java.util.Collection;
import java.util.List;
import org.apache.flink.api.connector.sink2.CommittingSinkWriter;

/**
 * Keeps the events since the last checkpoint, and makes them part of the next one. Nothing is stored before that is complete.
 * Used by one thread.
 */
final class CommittingWriter<T> implements CommittingSinkWriter<T, EventBatch> {
    private final SinkSettings settings;
    private final RecordEncoder<T> encoder;
    private final EventBuffer buffer;
    /** Appends nothing here: finds out when events go elsewhere. */
    private final BatchAppender appender;

    CommittingWriter(SinkSettings settings, RecordEncoder<T> encoder, EventBuffer buffer, BatchAppender appender) {
        this.settings = settings;
        this.encoder = encoder;
        this.buffer = buffer;
        this.appender = appender;
    }

    @Override
    public void write(T record, Context context) throws IOException {
        EncodedEvent event = encoder.encode(record);
        if (event != null) {
            buffer.add(event);
            requireSpace();
        }
    }

    private void requireSpace() throws IOException {
        if (buffer.bytes() > settings.bufferBytesMax()) {
            throw new IOException("A writer of sink " + settings.sink() + " has " + buffer.bytes()
                    + " bytes of events since the last checkpoint; the limit (bufferBytesMax, sink.buffer-bytes) is "
                    + settings.bufferBytesMax()
                    + ". Make checkpoints more often (execution.checkpointing.interval), or raise"
                    + " the limit or the parallelism");
        }
    }

    @Override
    public void flush(boolean endOfInput) {
        // The events become part of the checkpoint.
    }

    @Override
    public Collection<EventBatch> prepareCommit() {
        List<EventBatch> batches = buffer.drain();
        buffer.reroute(appender.refreshedRoutes());
        return batches;
    }

    @Override
    public void close() {
        appender.close();
    }
}
