package io.eventsql.flink.table;

import java.io.Serializable;
import java.util.List;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.LogicalTypeRoot;
import org.apache.flink.table.types.logical.RowType;
import org.jspecify.annotations.Nullable;

/** The column of a table whose value, as text, is the key of the events. */
final class KeyColumn implements Serializable {
    private static final long serialVersionUID = 1L;

    private final RowData.FieldGetter getter;

    private KeyColumn(RowData.FieldGetter getter) {
        this.getter = getter;
    }

    /**
     * Returns a column of the value.
     *
     * @param option what names the column, for messages
     * @throws ValidationException if there is no such column, or if its type has no text that identifies a value
     */
    static KeyColumn of(String option, String name, DataType physicalType) {
        RowType row = (RowType) physicalType.getLogicalType();
        int index = row.getFieldIndex(name);
        if (index < 0) {
            throw new ValidationException(option + " names the column '" + name + "', but the columns of the value are "
                    + row.getFieldNames());
        }
        LogicalType type = row.getTypeAt(index);
        if (!isText(type.getTypeRoot())) {
            throw new ValidationException(option + " names the column '" + name + "', which is "
                    + type.asSummaryString() + ". A key is STRING, VARCHAR, CHAR, or an integer type: CAST it");
        }
        return at(index, type);
    }

    /** Returns the column at an index of the consumed rows. */
    static KeyColumn at(int index, LogicalType type) {
        return new KeyColumn(RowData.createFieldGetter(type, index));
    }

    private static boolean isText(LogicalTypeRoot root) {
        return List.of(
                        LogicalTypeRoot.CHAR,
                        LogicalTypeRoot.VARCHAR,
                        LogicalTypeRoot.TINYINT,
                        LogicalTypeRoot.SMALLINT,
                        LogicalTypeRoot.INTEGER,
                        LogicalTypeRoot.BIGINT)
                .contains(root);
    }

    /** Returns the key of a row; {@code null} if it has none. */
    @Nullable
    String of(RowData row) {
        Object value = getter.getFieldOrNull(row);
        return value == null ? null : value.toString();
    }
}
