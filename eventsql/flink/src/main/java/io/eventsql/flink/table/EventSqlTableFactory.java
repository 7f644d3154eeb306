package io.eventsql.flink.table;

import java.util.Set;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.table.connector.format.DecodingFormat;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DeserializationFormatFactory;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;

/**
 * Creates the tables with {@code 'connector' = 'eventsql'}. Flink finds it by itself. A table has the columns of its format,
 * which decodes values, and the metadata columns {@code key}, {@code headers}, {@code shard}, {@code partition}, {@code offset}
 * and {@code published_at}.
 */
public final class EventSqlTableFactory implements DynamicTableSourceFactory {
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
}
