package io.eventsql.kafka.connect;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.eventsql.reader.LogEvent;
import io.eventsql.reader.StreamPartition;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.source.SourceRecord;
import org.jspecify.annotations.Nullable;

/** Converts events to records. Immutable. */
final class RecordConverter {
    static final String HEADER_PREFIX = "eventsql.";

    private final ConnectorConfig config;
    private final TopicFormat topics;

    RecordConverter(ConnectorConfig config) {
        this.config = config;
        this.topics = config.topics();
    }

    /**
     * Returns the record of an event; {@code null} if it has none, because it was erased.
     *
     * @throws ConnectException if the configuration does not allow for such an event
     */
    @Nullable
    SourceRecord convert(LogEvent event, @Nullable String incarnation) {
        if (event.isErased()) {
            switch (config.erasedEvents()) {
                case SKIP -> {
                    return null;
                }
                case FAIL ->
                    throw new ConnectException("The value of the event at offset " + event.offset() + " of "
                            + event.partition() + " was erased, and " + ConnectorConfig.ERASED_EVENTS + " is fail");
                case TOMBSTONE -> {} // it has no value
            }
        }
        StreamPartition partition = event.partition();
        String key = event.key();
        Object value = value(event);
        return new SourceRecord(
                SourcePartitions.toMap(partition),
                SourcePartitions.offsetAfter(event, incarnation),
                topics.topic(partition),
                config.keepsPartitions() ? partition.partition() : null,
                key == null ? null : Schema.STRING_SCHEMA,
                key,
                value == null ? null : config.isText() ? Schema.STRING_SCHEMA : Schema.BYTES_SCHEMA,
                value,
                event.publishedAt().toEpochMilli(),
                headers(event));
    }

    private @Nullable Object value(LogEvent event) {
        byte[] value = event.value();
        if (value == null || !config.isText()) {
            return value;
        }
        try {
            return UTF_8.newDecoder().decode(ByteBuffer.wrap(value)).toString();
        } catch (CharacterCodingException e) {
            throw new ConnectException(
                    "The value of the event at offset " + event.offset() + " of " + event.partition()
                            + " is not UTF-8; set " + ConnectorConfig.VALUE_TYPE + " to bytes",
                    e);
        }
    }

    private ConnectHeaders headers(LogEvent event) {
        ConnectHeaders headers = new ConnectHeaders();
        event.headers().forEach(headers::addString);
        if (config.addsPositionHeaders()) {
            StreamPartition partition = event.partition();
            headers.addString(HEADER_PREFIX + "stream", partition.stream());
            headers.addInt(HEADER_PREFIX + "shard", partition.shard());
            headers.addInt(HEADER_PREFIX + "partition", partition.partition());
            headers.addLong(HEADER_PREFIX + "offset", event.offset());
        }
        return headers;
    }
}
