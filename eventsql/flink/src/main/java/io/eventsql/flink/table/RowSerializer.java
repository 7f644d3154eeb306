package io.eventsql.flink.table;

import io.eventsql.flink.sink.EventSerializer;
import io.eventsql.flink.sink.SinkEvent;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.flink.api.common.serialization.SerializationSchema;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.MapData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.utils.ProjectedRowData;
import org.apache.flink.types.RowKind;
import org.jspecify.annotations.Nullable;

/**
 * Turns rows into events. A row has the columns of the value, followed by those of the metadata. A row that is
 * deleted or about to be replaced, which only a table with a primary key gets, is a tombstone: after a condition, no other row may
 * replace it.
 */
final class RowSerializer implements EventSerializer<RowData> {
    private static final long serialVersionUID = 1L;

    private final SerializationSchema<RowData> format;
    private final int valueColumns;
    private final @Nullable KeyColumn key;
    private final int headersIndex;
    private transient @Nullable ProjectedRowData valueRow;

    /**
     * @param key {@code null}: events have no keys
     * @param headersIndex the column of the headers; -1: events have none
     */
    RowSerializer(SerializationSchema<RowData> format, int valueColumns, @Nullable KeyColumn key, int headersIndex) {
        this.format = format;
        this.valueColumns = valueColumns;
        this.key = key;
        this.headersIndex = headersIndex;
    }

    @Override
    public void open(SerializationSchema.InitializationContext context) throws Exception {
        format.open(context);
        int[] columns = new int[valueColumns];
        for (int i = 0; i < valueColumns; i++) {
            columns[i] = i;
        }
        valueRow = ProjectedRowData.from(columns);
    }

    @Override
    public SinkEvent serialize(RowData row) throws IOException {
        ProjectedRowData projected = valueRow;
        if (projected == null) {
            throw new IllegalStateException("not opened");
        }
        boolean isDeleted = row.getRowKind() == RowKind.DELETE || row.getRowKind() == RowKind.UPDATE_BEFORE;
        String eventKey = key == null ? null : key.of(row);
        byte[] value = null;
        if (!isDeleted) {
            projected.replaceRow(row);
            projected.setRowKind(RowKind.INSERT);
            value = format.serialize(projected);
        }
        return new SinkEvent(eventKey, value, headersIndex < 0 ? Map.of() : headers(row));
    }

    private Map<String, String> headers(RowData row) throws IOException {
        if (row.isNullAt(headersIndex)) {
            return Map.of();
        }
        MapData data = row.getMap(headersIndex);
        ArrayData names = data.keyArray();
        ArrayData values = data.valueArray();
        Map<String, String> headers = new LinkedHashMap<>();
        for (int i = 0; i < data.size(); i++) {
            if (names.isNullAt(i) || values.isNullAt(i)) {
                throw new IOException("event.headers has a NULL: a header has a name and a value");
            }
            headers.put(names.getString(i).toString(), values.getString(i).toString());
        }
        return headers;
    }
}
