package io.eventsql.flink.table;

import io.eventsql.reader.LogEvent;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.data.GenericMapData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.types.DataType;
import org.jspecify.annotations.Nullable;

/** What a table can show of an event next to its value. */
enum EventMetadata {
    KEY(DataTypes.STRING().nullable()) {
        @Override
        @Nullable
        Object of(LogEvent event) {
            return StringData.fromString(event.key());
        }
    },
    HEADERS(DataTypes.MAP(DataTypes.STRING().notNull(), DataTypes.STRING().notNull())
            .notNull()) {
        @Override
        Object of(LogEvent event) {
            Map<StringData, StringData> headers = new HashMap<>();
            event.headers()
                    .forEach((name, value) -> headers.put(StringData.fromString(name), StringData.fromString(value)));
            return new GenericMapData(headers);
        }
    },
    SHARD(DataTypes.INT().notNull()) {
        @Override
        Object of(LogEvent event) {
            return event.partition().shard();
        }
    },
    PARTITION(DataTypes.INT().notNull()) {
        @Override
        Object of(LogEvent event) {
            return event.partition().partition();
        }
    },
    OFFSET(DataTypes.BIGINT().notNull()) {
        @Override
        Object of(LogEvent event) {
            return event.offset();
        }
    },
    PUBLISHED_AT(DataTypes.TIMESTAMP_LTZ(6).notNull()) {
        @Override
        Object of(LogEvent event) {
            return TimestampData.fromInstant(event.publishedAt());
        }
    };

    @SuppressWarnings("ImmutableEnumChecker") // Flink's types do not change
    private final DataType type;

    EventMetadata(DataType type) {
        this.type = type;
    }

    /** Returns the name in {@code METADATA FROM}. */
    String key() {
        return name().toLowerCase(Locale.ROOT);
    }

    DataType type() {
        return type;
    }

    /** Returns what the column has for an event, in Flink's internal form. */
    abstract @Nullable Object of(LogEvent event);

    static EventMetadata of(String key) {
        return Arrays.stream(values())
                .filter(each -> each.key().equals(key))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("There is no metadata " + key));
    }
}
