package io.eventsql.flink.sink;

import java.io.IOException;
import java.io.Serializable;
import org.apache.flink.api.common.serialization.SerializationSchema;
import org.jspecify.annotations.Nullable;

/**
 * Turns records into events. Each writer of a sink has a copy, which is called by one thread.
 *
 * @param <T> the type of the records
 */
@FunctionalInterface
public interface EventSerializer<T> extends Serializable {
    /** Prepares this copy, before the first record. */
    default void open(SerializationSchema.InitializationContext context) throws Exception {}

    /**
     * Returns the event of a record; {@code null}: the record is left out.
     *
     * @throws IOException if the record cannot be encoded: the job fails
     */
    @Nullable
    SinkEvent serialize(T record) throws IOException;

    /** Returns the key of a record. */
    @FunctionalInterface
    interface KeyOf<T> extends Serializable {
        /** Returns the key; {@code null}: the event has none. */
        @Nullable
        String key(T record);
    }

    /** Returns a serializer of events without keys, with values by one of Flink's schemas. */
    static <T> EventSerializer<T> ofValue(SerializationSchema<T> schema) {
        return of(record -> null, schema);
    }

    /** Returns a serializer of events without headers, with values by one of Flink's schemas. */
    static <T> EventSerializer<T> of(KeyOf<T> keys, SerializationSchema<T> schema) {
        return new ValueSerializer<>(keys, schema);
    }
}
