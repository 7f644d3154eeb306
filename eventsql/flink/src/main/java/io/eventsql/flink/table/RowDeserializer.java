package io.eventsql.flink.table;

import io.eventsql.flink.EventDeserializer;
import io.eventsql.reader.LogEvent;
import java.io.IOException;
import java.util.List;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.utils.JoinedRowData;
import org.apache.flink.util.Collector;
import org.jspecify.annotations.Nullable;

/** Makes rows: what the format decodes of the value, followed by metadata. An event without a value has no row. */
final class RowDeserializer implements EventDeserializer<RowData> {
    private static final long serialVersionUID = 1L;

    private final DeserializationSchema<RowData> format;
    private final List<EventMetadata> metadata;
    private final TypeInformation<RowData> type;
    private final MetadataCollector withMetadata = new MetadataCollector();

    RowDeserializer(
            DeserializationSchema<RowData> format, List<EventMetadata> metadata, TypeInformation<RowData> type) {
        this.format = format;
        this.metadata = metadata;
        this.type = type;
    }

    @Override
    public void open(DeserializationSchema.InitializationContext context) throws Exception {
        format.open(context);
    }

    @Override
    public void deserialize(LogEvent event, Collector<RowData> out) throws IOException {
        byte[] value = event.value();
        if (value == null) {
            return;
        }
        if (metadata.isEmpty()) {
            format.deserialize(value, out);
            return;
        }
        GenericRowData columns = new GenericRowData(metadata.size());
        for (int i = 0; i < metadata.size(); i++) {
            columns.setField(i, metadata.get(i).of(event));
        }
        withMetadata.columns = columns;
        withMetadata.out = out;
        format.deserialize(value, withMetadata);
    }

    @Override
    public TypeInformation<RowData> getProducedType() {
        return type;
    }

    /** Adds the metadata of the current event to each row of its value. */
    private static final class MetadataCollector implements Collector<RowData>, java.io.Serializable {
        private static final long serialVersionUID = 1L;

        private transient @Nullable GenericRowData columns;
        private transient @Nullable Collector<RowData> out;

        @Override
        public void collect(RowData row) {
            GenericRowData added = columns;
            Collector<RowData> target = out;
            if (added != null && target != null) {
                target.collect(new JoinedRowData(row.getRowKind(), row, added));
            }
        }

        @Override
        public void close() {
            out = null;
        }
    }
}
