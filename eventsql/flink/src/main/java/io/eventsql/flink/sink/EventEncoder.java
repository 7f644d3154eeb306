package io.eventsql.flink.sink;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * Rejects what the database would reject, before it becomes part of a checkpoint, and encodes headers as the JSON object that is
 * stored (RFC 8259). The limits are the defaults of the library.
 */
final class EventEncoder {
    static final int KEY_BYTES_MAX = 1_024;
    static final int HEADERS_BYTES_MAX = 16 << 10;

    private final int eventBytesMax;

    EventEncoder(int eventBytesMax) {
        this.eventBytesMax = eventBytesMax;
    }

    /** @throws IOException naming the field and the limit */
    EncodedEvent encode(SinkEvent event) throws IOException {
        byte[] value = event.value();
        if (value != null && value.length > eventBytesMax) {
            throw rejected("value", "has " + value.length + " bytes; the limit is " + eventBytesMax);
        }
        String key = event.key();
        if (key != null) {
            validateKey(key);
        } else if (value == null) {
            throw rejected("value", "is missing: an event without a value, a tombstone, must have a key");
        }
        return new EncodedEvent(key, value, event.headers().isEmpty() ? null : encodeHeaders(event.headers()));
    }

    private static void validateKey(String key) throws IOException {
        if (key.isEmpty()) {
            throw rejected("key", "is empty; use null for an event without a key");
        }
        validateText("key", key);
        int bytes = key.getBytes(StandardCharsets.UTF_8).length;
        if (bytes > KEY_BYTES_MAX) {
            throw rejected("key", "has " + bytes + " bytes; the limit is " + KEY_BYTES_MAX);
        }
    }

    private static String encodeHeaders(Map<String, String> headers) throws IOException {
        StringBuilder json = new StringBuilder("{");
        for (Map.Entry<String, String> header : headers.entrySet()) {
            if (header.getKey() == null || header.getKey().isEmpty()) {
                throw rejected("headers", "has a header without a name");
            } else if (header.getValue() == null) {
                throw rejected("headers", "has a header without a value");
            }
            validateText("headers", header.getKey());
            validateText("headers", header.getValue());
            json.append(json.length() > 1 ? "," : "");
            appendText(json, header.getKey());
            json.append(':');
            appendText(json, header.getValue());
        }
        String encoded = json.append('}').toString();
        int bytes = encoded.getBytes(StandardCharsets.UTF_8).length;
        if (bytes > HEADERS_BYTES_MAX) {
            throw rejected("headers", "has " + bytes + " bytes as JSON; the limit is " + HEADERS_BYTES_MAX);
        }
        return encoded;
    }

    private static void appendText(StringBuilder json, String text) {
        json.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            switch (c) {
                case '"' -> json.append("\\\"");
                case '\\' -> json.append("\\\\");
                case '\n' -> json.append("\\n");
                case '\r' -> json.append("\\r");
                case '\t' -> json.append("\\t");
                default -> {
                    if (c < ' ') {
                        json.append("\\u00").append(c < 0x10 ? "0" : "").append(Integer.toHexString(c));
                    } else {
                        json.append(c);
                    }
                }
            }
        }
        json.append('"');
    }

    /** PostgreSQL's text cannot contain NUL. Half of a surrogate pair has no UTF-8 form and would silently become '?'. */
    private static void validateText(String field, String text) throws IOException {
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == 0) {
                throw rejected(field, "has a NUL character at position " + i);
            }
            boolean isPair = Character.isHighSurrogate(c)
                    && i + 1 < text.length()
                    && Character.isLowSurrogate(text.charAt(i + 1));
            if (isPair) {
                i++;
            } else if (Character.isSurrogate(c)) {
                throw rejected(field, "has half a surrogate pair at position " + i);
            }
        }
    }

    private static IOException rejected(String field, String problem) {
        return new IOException("event." + field + " " + problem);
    }
}
