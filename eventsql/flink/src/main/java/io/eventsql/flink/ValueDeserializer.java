package io.eventsql.flink;

import io.eventsql.reader.LogEvent;
import java.io.IOException;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.util.Collector;

/** Decodes values by one of Flink's schemas. */
final class ValueDeserializer<T> implements EventDeserializer<T> {
    private static final long serialVersionUID = 1L;

    private final DeserializationSchema<T> schema;

    ValueDeserializer(DeserializationSchema<T> schema) {
        this.schema = schema;
    }

    @Override
    public void open(DeserializationSchema.InitializationContext context) throws Exception {
        schema.open(context);
    }

    @Override
    public void deserialize(LogEvent event, Collector<T> out) throws IOException {
        byte[] value = event.value();
        if (value != null) {
            schema.deserialize(value, out);
        }
    }

    @Override
    public TypeInformation<T> getProducedType() {
        return schema.getProducedType();
    }
}
