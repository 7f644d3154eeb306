package io.eventsql.flink.sink;

import org.apache.flink.api.common.serialization.SerializationSchema;

/** Encodes values by one of Flink's schemas. */
final class ValueSerializer<T> implements EventSerializer<T> {
    private static final long serialVersionUID = 1L;

    private final KeyOf<T> keys;
    private final SerializationSchema<T> schema;

    ValueSerializer(KeyOf<T> keys, SerializationSchema<T> schema) {
        this.keys = keys;
        this.schema = schema;
    }

    @Override
    public void open(SerializationSchema.InitializationContext context) throws Exception {
        schema.open(context);
    }

    @Override
    public SinkEvent serialize(T record) {
        return new SinkEvent(keys.key(record), schema.serialize(record));
    }
}
