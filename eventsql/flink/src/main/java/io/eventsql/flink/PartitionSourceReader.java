package io.eventsql.flink;

import io.eventsql.reader.LogEvent;
import io.eventsql.reader.ReadPosition;
import java.util.Map;
import org.apache.flink.api.connector.source.SourceOutput;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.connector.base.source.reader.RecordEmitter;
import org.apache.flink.connector.base.source.reader.SingleThreadMultiplexSourceReaderBase;
import org.apache.flink.util.Collector;
import org.jspecify.annotations.Nullable;

/** Emits the events of its splits, and keeps how far they were emitted for checkpoints. */
@SuppressWarnings("try") // Flink's close() may throw anything
final class PartitionSourceReader<T>
        extends SingleThreadMultiplexSourceReaderBase<
                FetchedEvent, T, PartitionSplit, PartitionSourceReader.SplitState> {

    PartitionSourceReader(SourceSettings settings, EventDeserializer<T> deserializer, SourceReaderContext context) {
        this(settings, deserializer, context, new ReaderMetrics(context.metricGroup()));
    }

    private PartitionSourceReader(
            SourceSettings settings,
            EventDeserializer<T> deserializer,
            SourceReaderContext context,
            ReaderMetrics metrics) {
        super(
                () -> new PartitionSplitReader(settings, metrics, System::nanoTime),
                new Emitter<>(deserializer, metrics),
                context.getConfiguration(),
                context);
    }

    /** A split and how far its events were emitted. */
    static final class SplitState {
        private PartitionSplit split;

        SplitState(PartitionSplit split) {
            this.split = split;
        }

        PartitionSplit split() {
            return split;
        }

        void emitted(LogEvent event, @Nullable String incarnation) {
            split = new PartitionSplit(
                    split.partition(),
                    new ReadPosition(event.offset() + 1, incarnation, event.offset(), event.publishedAt()),
                    split.endOffset());
        }
    }

    /** Emits one event. */
    private static final class Emitter<T> implements RecordEmitter<FetchedEvent, T, SplitState> {
        private final EventDeserializer<T> deserializer;
        private final ReaderMetrics metrics;
        private final TimedCollector<T> collector = new TimedCollector<>();

        Emitter(EventDeserializer<T> deserializer, ReaderMetrics metrics) {
            this.deserializer = deserializer;
            this.metrics = metrics;
        }

        @Override
        public void emitRecord(FetchedEvent fetched, SourceOutput<T> output, SplitState state) throws Exception {
            LogEvent event = fetched.event();
            collector.output = output;
            collector.timeMs = event.publishedAt().toEpochMilli();
            deserializer.deserialize(event, collector);
            metrics.emitted(event);
            state.emitted(event, fetched.incarnation());
        }
    }

    private static final class TimedCollector<T> implements Collector<T> {
        private @Nullable SourceOutput<T> output;
        private long timeMs;

        @Override
        public void collect(T element) {
            SourceOutput<T> current = output;
            if (current != null) {
                current.collect(element, timeMs);
            }
        }

        @Override
        public void close() {
            output = null;
        }
    }

    @Override
    protected void onSplitFinished(Map<String, SplitState> finished) {
        // The enumerator assigns without a request.
    }

    @Override
    protected SplitState initializedState(PartitionSplit split) {
        return new SplitState(split);
    }

    @Override
    protected PartitionSplit toSplitType(String splitId, SplitState state) {
        return state.split();
    }
}
