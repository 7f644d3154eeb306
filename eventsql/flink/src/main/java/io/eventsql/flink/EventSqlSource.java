package io.eventsql.flink;

import java.time.Duration;
import java.util.List;
import java.util.Set;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.api.java.typeutils.ResultTypeQueryable;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.util.UserCodeClassLoader;

/**
 * A stream as a source of Flink, bounded or unbounded: one split for each partition of each shard. Positions are part of
 * Flink's checkpoints, so after a failure the job's state counts each event once. It reads by polling, from primary servers or
 * replicas, and the database keeps nothing of it.
 *
 * <p>Records have the time at which their event was published, which never decreases within a partition: {@link
 * #watermarks}.
 *
 * @param <T> the type of the records
 */
public final class EventSqlSource<T> implements Source<T, PartitionSplit, EnumeratorState>, ResultTypeQueryable<T> {
    private static final long serialVersionUID = 1L;

    private final SourceSettings settings;
    private final EventDeserializer<T> deserializer;

    EventSqlSource(SourceSettings settings, EventDeserializer<T> deserializer) {
        this.settings = settings;
        this.deserializer = deserializer;
    }

    /**
     * Returns a builder.
     *
     * @param stream the stream's name
     * @param deserializer turns events into records
     */
    public static <T> EventSqlSourceBuilder<T> builder(String stream, EventDeserializer<T> deserializer) {
        return new EventSqlSourceBuilder<>(stream, deserializer);
    }

    /**
     * Returns the strategy for watermarks by the time of publishing. It needs no delay, because that time never decreases
     * within a partition. But partitions that a stream gets while the job runs are found late: then windows drop their first
     * events, unless the watermark is delayed by the discovery interval at least.
     *
     * @param idleness after how long a partition without new events does not hold the watermark back any more; 0: never, for
     *     bounded sources
     */
    public static <T> WatermarkStrategy<T> watermarks(Duration idleness) {
        WatermarkStrategy<T> strategy = WatermarkStrategy.forMonotonousTimestamps();
        return idleness.isZero() ? strategy : strategy.withIdleness(idleness);
    }

    @Override
    public Boundedness getBoundedness() {
        return settings.isBounded() ? Boundedness.BOUNDED : Boundedness.CONTINUOUS_UNBOUNDED;
    }

    @Override
    public SplitEnumerator<PartitionSplit, EnumeratorState> createEnumerator(
            SplitEnumeratorContext<PartitionSplit> context) {
        return restoreEnumerator(context, new EnumeratorState(false, Set.of(), List.of()));
    }

    @Override
    public SplitEnumerator<PartitionSplit, EnumeratorState> restoreEnumerator(
            SplitEnumeratorContext<PartitionSplit> context, EnumeratorState state) {
        return new PartitionEnumerator(settings, context, state);
    }

    @Override
    public SourceReader<T, PartitionSplit> createReader(SourceReaderContext context) throws Exception {
        deserializer.open(new DeserializationSchema.InitializationContext() {
            @Override
            public MetricGroup getMetricGroup() {
                return context.metricGroup().addGroup("deserializer");
            }

            @Override
            public UserCodeClassLoader getUserCodeClassLoader() {
                return context.getUserCodeClassLoader();
            }
        });
        return new PartitionSourceReader<>(settings, deserializer, context);
    }

    @Override
    public SimpleVersionedSerializer<PartitionSplit> getSplitSerializer() {
        return new StateSerializers.OfSplit();
    }

    @Override
    public SimpleVersionedSerializer<EnumeratorState> getEnumeratorCheckpointSerializer() {
        return new StateSerializers.OfEnumerator();
    }

    @Override
    public TypeInformation<T> getProducedType() {
        return deserializer.getProducedType();
    }

    @Override
    public String toString() {
        return "EventSqlSource[" + settings + "]";
    }
}
