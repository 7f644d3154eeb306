package io.eventsql.flink;

import io.eventsql.reader.LogEvent;
import java.io.IOException;
import java.io.Serializable;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.api.java.typeutils.ResultTypeQueryable;
import org.apache.flink.util.Collector;

/**
 * Turns events into records. Each reader of a source has a copy, which is called by one thread.
 *
 * @param <T> the type of the records
 */
public interface EventDeserializer<T> extends Serializable, ResultTypeQueryable<T> {
    /** Prepares this copy, before the first event. */
    default void open(DeserializationSchema.InitializationContext context) throws Exception {}

    /**
     * Emits the records of an event: none, one or several. They get the time at which it was published.
     *
     * @throws IOException if the event cannot be decoded: the job fails
     */
    void deserialize(LogEvent event, Collector<T> out) throws IOException;

    /** Returns a deserializer of values. Events without a value, which are tombstones or were erased, are left out. */
    static <T> EventDeserializer<T> ofValue(DeserializationSchema<T> schema) {
        return new ValueDeserializer<>(schema);
    }
}
