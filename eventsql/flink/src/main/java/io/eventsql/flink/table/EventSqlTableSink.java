package io.eventsql.flink.table;

import io.eventsql.flink.sink.EventSqlSink;
import io.eventsql.flink.sink.EventSqlSinkBuilder;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.serialization.SerializationSchema;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.format.EncodingFormat;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.connector.sink.abilities.SupportsWritingMetadata;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.types.RowKind;
import org.jspecify.annotations.Nullable;

/** A stream as a table to insert into: append-only, or with a primary key, by which later events replace earlier ones. */
final class EventSqlTableSink implements DynamicTableSink, SupportsWritingMetadata {
    private final ReadableConfig options;
    private final EncodingFormat<SerializationSchema<RowData>> format;
    private final DataType physicalType;
    private final @Nullable String primaryKey;

    private List<String> metadata = List.of();

    /** @param primaryKey the column of the declared primary key; {@code null}: the table is append-only */
    EventSqlTableSink(
            ReadableConfig options,
            EncodingFormat<SerializationSchema<RowData>> format,
            DataType physicalType,
            @Nullable String primaryKey) {
        this.options = options;
        this.format = format;
        this.physicalType = physicalType;
        this.primaryKey = primaryKey;
    }

    @Override
    public ChangelogMode getChangelogMode(ChangelogMode requested) {
        if (primaryKey == null) {
            return ChangelogMode.insertOnly();
        }
        return ChangelogMode.newBuilder()
                .addContainedKind(RowKind.INSERT)
                .addContainedKind(RowKind.UPDATE_AFTER)
                .addContainedKind(RowKind.DELETE)
                .build();
    }

    @Override
    public Map<String, DataType> listWritableMetadata() {
        return WritableMetadata.types();
    }

    @Override
    public void applyWritableMetadata(List<String> keys, DataType consumedType) {
        metadata = keys;
    }

    @Override
    public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
        RowSerializer serializer = new RowSerializer(
                format.createRuntimeEncoder(context, physicalType),
                DataType.getFieldCount(physicalType),
                key(),
                indexOf(WritableMetadata.HEADERS));
        EventSqlSinkBuilder<RowData> builder = EventSqlSink.builder(options.get(EventSqlOptions.STREAM), serializer)
                .urls(options.get(EventSqlOptions.URL).toArray(new String[0]))
                .credentials(options.get(EventSqlOptions.USERNAME), options.get(EventSqlOptions.PASSWORD))
                .schema(options.get(EventSqlOptions.SCHEMA))
                .deliveryGuarantee(options.get(EventSqlOptions.DELIVERY_GUARANTEE))
                .bufferBytesMax(options.get(EventSqlOptions.BUFFER_BYTES).getBytes())
                .flushInterval(options.get(EventSqlOptions.FLUSH_INTERVAL))
                .failureTimeout(options.get(EventSqlOptions.SINK_FAILURE_TIMEOUT));
        options.getOptional(EventSqlOptions.SINK_NAME).ifPresent(builder::sink);
        Integer parallelism = options.getOptional(FactoryUtil.SINK_PARALLELISM).orElse(null);
        return SinkV2Provider.of(builder.build(), parallelism);
    }

    private @Nullable KeyColumn key() {
        int metadataIndex = indexOf(WritableMetadata.KEY);
        String option = options.getOptional(EventSqlOptions.KEY_COLUMN).orElse(null);
        if (primaryKey != null) {
            if (option != null || metadataIndex >= 0) {
                throw new ValidationException(
                        "The table has a PRIMARY KEY, which is the key of its events: remove the option '"
                                + EventSqlOptions.KEY_COLUMN.key() + "' and make the metadata column 'key' VIRTUAL");
            }
            return KeyColumn.of("The PRIMARY KEY", primaryKey, physicalType);
        } else if (option == null) {
            LogicalType text = WritableMetadata.KEY.type().getLogicalType();
            return metadataIndex < 0 ? null : KeyColumn.at(metadataIndex, text);
        } else if (metadataIndex >= 0) {
            throw new ValidationException("The key comes from the option '" + EventSqlOptions.KEY_COLUMN.key()
                    + "': make the metadata column 'key' VIRTUAL, or remove the option");
        }
        return KeyColumn.of("The option '" + EventSqlOptions.KEY_COLUMN.key() + "'", option, physicalType);
    }

    /** Returns the column of the consumed rows; -1 if the table does not have it. */
    private int indexOf(WritableMetadata wanted) {
        int index = metadata.indexOf(wanted.key());
        return index < 0 ? -1 : DataType.getFieldCount(physicalType) + index;
    }

    @Override
    public DynamicTableSink copy() {
        EventSqlTableSink copy = new EventSqlTableSink(options, format, physicalType, primaryKey);
        copy.metadata = metadata;
        return copy;
    }

    @Override
    public String asSummaryString() {
        return EventSqlTableFactory.IDENTIFIER;
    }
}
