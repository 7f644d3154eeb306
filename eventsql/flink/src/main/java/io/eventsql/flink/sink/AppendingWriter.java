package io.eventsql.flink.sink;

import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.ScheduledFuture;
import org.apache.flink.api.common.operators.ProcessingTimeService;
import org.apache.flink.api.connector.sink2.CommittingSinkWriter;
import org.jspecify.annotations.Nullable;

/**
 * Appends events after the flush interval, or when there are enough for a batch, and before each checkpoint. Used by one thread.
 */
final class AppendingWriter<T> implements CommittingSinkWriter<T, EventBatch> {
    private final SinkSettings settings;
    private final RecordEncoder<T> encoder;
    private final EventBuffer buffer;
    private final BatchAppender appender;
    private final ProcessingTimeService clock;
    private @Nullable ScheduledFuture<?> timer;

    AppendingWriter(
            SinkSettings settings,
            RecordEncoder<T> encoder,
            EventBuffer buffer,
            BatchAppender appender,
            ProcessingTimeService clock) {
        this.settings = settings;
        this.encoder = encoder;
        this.buffer = buffer;
        this.appender = appender;
        this.clock = clock;
    }

    @Override
    public void write(T record, Context context) throws IOException, InterruptedException {
        EncodedEvent event = encoder.encode(record);
        if (event == null) {
            return;
        }
        buffer.add(event);
        if (buffer.size() >= EventBuffer.BATCH_EVENTS_MAX || buffer.bytes() >= EventBuffer.BATCH_BYTES_MAX) {
            flush(false);
        } else if (timer == null) {
            long time =
                    clock.getCurrentProcessingTime() + settings.flushInterval().toMillis();
            timer = clock.registerTimer(time, now -> {
                timer = null;
                flush(false);
            });
        }
    }

    @Override
    public void flush(boolean endOfInput) throws IOException, InterruptedException {
        List<EventBatch> batches = buffer.drain();
        if (!batches.isEmpty()) {
            appender.append(batches);
            buffer.reroute(appender.refreshedRoutes());
        }
    }

    @Override
    public Collection<EventBatch> prepareCommit() {
        return List.of(); // flushed before
    }

    @Override
    public void close() {
        ScheduledFuture<?> pending = timer;
        if (pending != null) {
            pending.cancel(false);
        }
        appender.close();
    }
}
