package io.eventsql.flink.sink;

import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * An event that the database accepts.
 *
 * @param value {@code null}: a tombstone
 * @param headers the headers as a JSON object; {@code null} if there are none
 */
record EncodedEvent(
        @Nullable String key,
        byte @Nullable [] value,
        @Nullable String headers) {
    /** Overhead of a row in buffers and on the wire, in addition to its texts and bytes. */
    private static final int ROW_OVERHEAD_BYTES = 64;

    /** Returns its size in buffers and batches, about. */
    int bytes() {
        return ROW_OVERHEAD_BYTES
                + (key == null ? 0 : key.length())
                + (value == null ? 0 : value.length)
                + (headers == null ? 0 : headers.length());
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof EncodedEvent that
                && Objects.equals(key, that.key)
                && Arrays.equals(value, that.value)
                && Objects.equals(headers, that.headers);
    }

    @Override
    public int hashCode() {
        return Objects.hash(key, Arrays.hashCode(value), headers);
    }
}
