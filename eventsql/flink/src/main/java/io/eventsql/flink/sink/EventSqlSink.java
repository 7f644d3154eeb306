package io.eventsql.flink.sink;

import java.io.IOException;
import org.apache.flink.api.common.serialization.SerializationSchema;
import org.apache.flink.api.connector.sink2.Committer;
import org.apache.flink.api.connector.sink2.CommitterInitContext;
import org.apache.flink.api.connector.sink2.CommittingSinkWriter;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.SupportsCommitter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.streaming.api.connector.sink2.SupportsPreWriteTopology;
import org.apache.flink.streaming.api.datastream.DataStream;

/**
 * A stream as a sink of Flink. With {@link DeliveryGuarantee#EXACTLY_ONCE}, the default, each record is one event of the stream,
 * whatever fails: events become part of Flink's checkpoint, and are stored when that is complete. A job without checkpoints, such
 * as one in batch mode, stores them at its end, and possibly again if it is restarted after a failure. With {@link
 * DeliveryGuarantee#AT_LEAST_ONCE} they are stored without waiting for a checkpoint, and after a failure possibly again.
 *
 * <p>Events of one key are stored in the order in which a writer gets them: all of a key come to one writer if the records are
 * keyed by it.
 *
 * @param <T> the type of the records
 */
public final class EventSqlSink<T> implements Sink<T>, SupportsCommitter<EventBatch>, SupportsPreWriteTopology<T> {
    private static final long serialVersionUID = 1L;

    private final SinkSettings settings;
    private final EventSerializer<T> serializer;

    EventSqlSink(SinkSettings settings, EventSerializer<T> serializer) {
        this.settings = settings;
        this.serializer = serializer;
    }

    /**
     * Returns a builder.
     *
     * @param stream the stream's name; it must exist
     * @param serializer turns records into events
     */
    public static <T> EventSqlSinkBuilder<T> builder(String stream, EventSerializer<T> serializer) {
        return new EventSqlSinkBuilder<>(stream, serializer);
    }

    /**
     * Called by Flink when the job is translated.
     *
     * @throws IllegalStateException if the job never makes a checkpoint, so that nothing would be stored
     */
    @Override
    public DataStream<T> addPreWriteTopology(DataStream<T> records) {
        if (settings.isExactlyOnce()) {
            CheckpointCheck.requireCheckpoints(records, settings.sink());
        }
        return records;
    }

    @Override
    public SinkWriter<T> createWriter(WriterInitContext context) throws IOException {
        BatchAppender appender = new BatchAppender(settings);
        try {
            return createWriter(context, appender);
        } catch (InterruptedException e) {
            appender.close();
            Thread.currentThread().interrupt();
            throw new IOException("Interrupted while opening " + this, e);
        } catch (IOException | RuntimeException e) {
            appender.close();
            throw e;
        }
    }

    private CommittingSinkWriter<T, EventBatch> createWriter(WriterInitContext context, BatchAppender appender)
            throws IOException, InterruptedException {
        open(context.asSerializationSchemaInitializationContext());
        RecordEncoder<T> encoder =
                new RecordEncoder<>(serializer, new EventEncoder(settings.eventBytesMax()), context.metricGroup());
        EventBuffer buffer = new EventBuffer(
                settings.stream(), appender.findRoutes(), context.getTaskInfo().getIndexOfThisSubtask());
        return settings.isExactlyOnce()
                ? new CommittingWriter<>(settings, encoder, buffer, appender)
                : new AppendingWriter<>(settings, encoder, buffer, appender, context.getProcessingTimeService());
    }

    private void open(SerializationSchema.InitializationContext context) throws IOException {
        try {
            serializer.open(context);
        } catch (IOException | RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new IOException("Opening the serializer of " + this + " failed", e);
        }
    }

    @Override
    public Committer<EventBatch> createCommitter(CommitterInitContext context) {
        return new BatchCommitter(new BatchAppender(settings));
    }

    @Override
    public SimpleVersionedSerializer<EventBatch> getCommittableSerializer() {
        return new BatchSerializer();
    }

    @Override
    public String toString() {
        return "EventSqlSink[" + settings + "]";
    }
}
