package io.eventsql.flink.table;

import io.eventsql.flink.EventSqlSource;
import io.eventsql.flink.EventSqlSourceBuilder;
import io.eventsql.reader.StreamPosition;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.DataStreamSource;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.ProviderContext;
import org.apache.flink.table.connector.format.DecodingFormat;
import org.apache.flink.table.connector.source.DataStreamScanProvider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.abilities.SupportsReadingMetadata;
import org.apache.flink.table.connector.source.abilities.SupportsSourceWatermark;
import org.apache.flink.table.connector.source.abilities.SupportsWatermarkPushDown;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.types.DataType;

/** A table over a stream. Watermarks are made per partition, also those of a declared expression. */
final class EventSqlTableSource
        implements ScanTableSource, SupportsReadingMetadata, SupportsWatermarkPushDown, SupportsSourceWatermark {
    private static final String NAME = "eventsql";
    private static final Duration DEFAULT_IDLENESS = Duration.ofSeconds(10);

    private final String table;
    private final ReadableConfig options;
    private final DecodingFormat<DeserializationSchema<RowData>> format;
    private final DataType physicalType;

    private DataType producedType;
    private List<EventMetadata> metadata = List.of();
    private WatermarkStrategy<RowData> watermarks = WatermarkStrategy.noWatermarks();

    EventSqlTableSource(
            String table,
            ReadableConfig options,
            DecodingFormat<DeserializationSchema<RowData>> format,
            DataType physicalType) {
        this.table = table;
        this.options = options;
        this.format = format;
        this.physicalType = physicalType;
        this.producedType = physicalType;
    }

    @Override
    public ChangelogMode getChangelogMode() {
        return format.getChangelogMode();
    }

    @Override
    public Map<String, DataType> listReadableMetadata() {
        Map<String, DataType> types = new LinkedHashMap<>();
        Arrays.stream(EventMetadata.values()).forEach(each -> types.put(each.key(), each.type()));
        return types;
    }

    @Override
    public void applyReadableMetadata(List<String> keys, DataType newProducedType) {
        metadata = keys.stream().map(EventMetadata::of).toList();
        producedType = newProducedType;
    }

    @Override
    public void applyWatermark(WatermarkStrategy<RowData> strategy) {
        watermarks = strategy;
    }

    @Override
    public void applySourceWatermark() {
        // A bounded query ends anyway, and must not drop the events of a slow reader as late.
        Duration idleness = isBounded() ? Duration.ZERO : DEFAULT_IDLENESS;
        watermarks = EventSqlSource.watermarks(
                options.getOptional(FactoryUtil.SOURCE_IDLE_TIMEOUT).orElse(idleness));
    }

    private boolean isBounded() {
        return EventSqlOptions.end(options) != null;
    }

    @Override
    public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
        EventSqlSource<RowData> source = source(context);
        WatermarkStrategy<RowData> strategy = watermarks;
        return new DataStreamScanProvider() {
            @Override
            public DataStream<RowData> produceDataStream(
                    ProviderContext providerContext, StreamExecutionEnvironment environment) {
                DataStreamSource<RowData> stream = environment.fromSource(source, strategy, NAME + ": " + table);
                providerContext.generateUid(NAME).ifPresent(stream::uid);
                return stream;
            }

            @Override
            public boolean isBounded() {
                return EventSqlTableSource.this.isBounded();
            }

            @Override
            public Optional<Integer> getParallelism() {
                return options.getOptional(FactoryUtil.SOURCE_PARALLELISM);
            }
        };
    }

    private EventSqlSource<RowData> source(ScanContext context) {
        RowDeserializer deserializer = new RowDeserializer(
                format.createRuntimeDecoder(context, physicalType),
                metadata,
                context.createTypeInformation(producedType));
        EventSqlSourceBuilder<RowData> builder = EventSqlSource.builder(
                        options.get(EventSqlOptions.STREAM), deserializer)
                .urls(options.get(EventSqlOptions.URL).toArray(new String[0]))
                .credentials(options.get(EventSqlOptions.USERNAME), options.get(EventSqlOptions.PASSWORD))
                .reader(EventSqlOptions.reader(options))
                .startAt(EventSqlOptions.start(options))
                .discoveryInterval(options.get(EventSqlOptions.DISCOVERY_INTERVAL))
                .failureTimeout(options.get(EventSqlOptions.FAILURE_TIMEOUT));
        StreamPosition end = EventSqlOptions.end(options);
        return (end == null ? builder : builder.endAt(end)).build();
    }

    @Override
    public DynamicTableSource copy() {
        EventSqlTableSource copy = new EventSqlTableSource(table, options, format, physicalType);
        copy.producedType = producedType;
        copy.metadata = metadata;
        copy.watermarks = watermarks;
        return copy;
    }

    @Override
    public String asSummaryString() {
        return NAME;
    }
}
