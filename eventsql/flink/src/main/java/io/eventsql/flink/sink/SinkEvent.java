package io.eventsql.flink.sink;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * An event to be stored.
 *
 * @param key decides the partition; {@code null}: any partition. At most 1,024 bytes in UTF-8, not empty
 * @param value the payload, not copied; {@code null}: a tombstone, which ends its key
 * @param headers names and values, in their order; at most 16 KiB as JSON
 */
@SuppressWarnings("ArrayRecordComponent") // a value is not copied; events are not compared
public record SinkEvent(@Nullable String key, byte @Nullable [] value, Map<String, String> headers) {

    /** Creates an event without headers. */
    public SinkEvent(@Nullable String key, byte @Nullable [] value) {
        this(key, value, Map.of());
    }

    /** Returns an event with a text, encoded as UTF-8. */
    public static SinkEvent ofText(@Nullable String key, String text) {
        return new SinkEvent(key, text.getBytes(StandardCharsets.UTF_8));
    }
}
