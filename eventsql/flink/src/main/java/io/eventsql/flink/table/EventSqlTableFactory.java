package io.eventsql.flink.table;

import java.util.Set;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.api.common.serialization.SerializationSchema;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.connector.format.DecodingFormat;
import org.apache.flink.table.connector.format.EncodingFormat;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DeserializationFormatFactory;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.factories.SerializationFormatFactory;
import org.apache.flink.types.RowKind;
import org.jspecify.annotations.Nullable;

/**
 * Creates the tables with {@code 'connector' = 'eventsql'}. Flink finds it by itself. A table has the columns of its format,
 * which decodes and encodes values, and the metadata columns {@code key}, {@code headers}, {@code shard}, {@code partition},
 * {@code offset} and {@code published_at}, of which the first two can be written.
 */
public final class EventSqlTableFactory implements DynamicTableSourceFactory, DynamicTableSinkFactory {
    /** The name of the connector. */
    public static final String IDENTIFIER = "eventsql";

    /** Creates the factory; called by Flink. */
    public EventSqlTableFactory() {}

    @Override
    public String factoryIdentifier() {
        return IDENTIFIER;
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of(
                EventSqlOptions.URL,
                EventSqlOptions.USERNAME,
                EventSqlOptions.PASSWORD,
                EventSqlOptions.STREAM,
                FactoryUtil.FORMAT);
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of(
                EventSqlOptions.SCHEMA,
                EventSqlOptions.STARTUP_MODE,
                EventSqlOptions.STARTUP_TIMESTAMP,
                EventSqlOptions.STARTUP_OFFSET,
                EventSqlOptions.BOUNDED_MODE,
                EventSqlOptions.BOUNDED_TIMESTAMP,
                EventSqlOptions.BOUNDED_OFFSET,
                EventSqlOptions.DISCOVERY_INTERVAL,
                EventSqlOptions.POLL_INTERVAL,
                EventSqlOptions.FAILURE_TIMEOUT,
                EventSqlOptions.PAGE_EVENTS,
                EventSqlOptions.SINK_NAME,
                EventSqlOptions.DELIVERY_GUARANTEE,
                EventSqlOptions.KEY_COLUMN,
                EventSqlOptions.BUFFER_BYTES,
                EventSqlOptions.FLUSH_INTERVAL,
                EventSqlOptions.SINK_FAILURE_TIMEOUT,
                FactoryUtil.SINK_PARALLELISM,
                FactoryUtil.SOURCE_IDLE_TIMEOUT,
                FactoryUtil.SOURCE_PARALLELISM,
                FactoryUtil.WATERMARK_EMIT_STRATEGY,
                FactoryUtil.WATERMARK_ALIGNMENT_GROUP,
                FactoryUtil.WATERMARK_ALIGNMENT_MAX_DRIFT,
                FactoryUtil.WATERMARK_ALIGNMENT_UPDATE_INTERVAL);
    }

    @Override
    public DynamicTableSource createDynamicTableSource(Context context) {
        FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
        DecodingFormat<DeserializationSchema<RowData>> format =
                helper.discoverDecodingFormat(DeserializationFormatFactory.class, FactoryUtil.FORMAT);
        helper.validate();
        // Checks the options before the query runs.
        EventSqlOptions.start(helper.getOptions());
        EventSqlOptions.end(helper.getOptions());
        EventSqlOptions.reader(helper.getOptions());
        return new EventSqlTableSource(
                context.getObjectIdentifier().asSummaryString(),
                helper.getOptions(),
                format,
                context.getPhysicalRowDataType());
    }

    @Override
    public DynamicTableSink createDynamicTableSink(Context context) {
        FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
        EncodingFormat<SerializationSchema<RowData>> format =
                helper.discoverEncodingFormat(SerializationFormatFactory.class, FactoryUtil.FORMAT);
        helper.validate();
        if (!format.getChangelogMode().containsOnly(RowKind.INSERT)) {
            throw new ValidationException("Format '" + helper.getOptions().get(FactoryUtil.FORMAT)
                    + "' encodes changes; an event is one row: use a format such as 'json' or 'raw'");
        } else if (helper.getOptions().get(EventSqlOptions.DELIVERY_GUARANTEE) == DeliveryGuarantee.NONE) {
            throw new ValidationException("The option '" + EventSqlOptions.DELIVERY_GUARANTEE.key()
                    + "' must be 'exactly-once' or 'at-least-once', but is 'none'");
        }
        return new EventSqlTableSink(
                helper.getOptions(), format, context.getPhysicalRowDataType(), primaryKey(context));
    }

    private static @Nullable String primaryKey(Context context) {
        int[] columns = context.getPrimaryKeyIndexes();
        if (columns.length > 1) {
            throw new ValidationException(
                    "A PRIMARY KEY must have one column, because an event has one key, but it has " + columns.length
                            + ": use a column that joins them");
        }
        return columns.length == 0
                ? null
                : context.getCatalogTable()
                        .getResolvedSchema()
                        .getPrimaryKey()
                        .map(key -> key.getColumns().get(0))
                        .orElse(null);
    }
}
