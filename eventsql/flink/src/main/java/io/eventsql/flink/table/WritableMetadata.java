package io.eventsql.flink.table;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.types.DataType;

/** What a table can set of an event next to its value. */
enum WritableMetadata {
    KEY(DataTypes.STRING().nullable()),
    HEADERS(DataTypes.MAP(DataTypes.STRING().nullable(), DataTypes.STRING().nullable())
            .nullable());

    @SuppressWarnings("ImmutableEnumChecker") // Flink's types do not change
    private final DataType type;

    WritableMetadata(DataType type) {
        this.type = type;
    }

    /** Returns the name in {@code METADATA FROM}. */
    String key() {
        return name().toLowerCase(Locale.ROOT);
    }

    DataType type() {
        return type;
    }

    /** Returns the types of all of them, by name. */
    static Map<String, DataType> types() {
        Map<String, DataType> types = new LinkedHashMap<>();
        Arrays.stream(values()).forEach(each -> types.put(each.key(), each.type));
        return types;
    }
}
