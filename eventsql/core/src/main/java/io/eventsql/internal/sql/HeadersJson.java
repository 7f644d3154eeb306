package io.eventsql.internal.sql;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Map.Entry;
import org.jspecify.annotations.Nullable;

/**
 * Encodes headers as the JSON object that is stored, with string values only (RFC 8259), in a form that PostgreSQL's
 * JSON operators accept. Decodes what {@link #encode} wrote, and any other JSON object, at once or when it is first used.
 */
public final class HeadersJson {
    private HeadersJson() {}

    /** Returns the headers as a JSON object. NUL characters and lone surrogates must have been rejected before. */
    public static String encode(Map<String, String> headers) {
        StringBuilder json = new StringBuilder(lengthWithoutEscapes(headers)).append('{');
        for (Entry<String, String> header : headers.entrySet()) {
            if (json.length() > 1) {
                json.append(',');
            }
            appendText(json, header.getKey());
            json.append(':');
            appendText(json, header.getValue());
        }
        return json.append('}').toString();
    }

    private static int lengthWithoutEscapes(Map<String, String> headers) {
        int length = 2;
        for (Entry<String, String> header : headers.entrySet()) {
            length += header.getKey().length() + header.getValue().length() + 6; // quotes, colon, comma
        }
        return length;
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

    /**
     * Decodes a JSON object. Values that are not strings, which the library does not write, are returned as their JSON
     * text.
     *
     * @throws IllegalArgumentException if the text is not a JSON object
     */
    public static Map<String, String> decode(String json) {
        Map<String, String> headers = new LinkedHashMap<>();
        return new Reader(json).read(headers) ? Collections.unmodifiableMap(headers) : Map.of();
    }

    /**
     * Returns what {@link #decode} returns, but decoded when it is first used. Checks the whole object now: the use never
     * fails.
     *
     * @throws IllegalArgumentException if the text is not a JSON object
     */
    public static Map<String, String> decodeLazily(String json) {
        return new Reader(json).read(null) ? new LazyHeaders(json) : Map.of();
    }

    /** Returns the number of characters that headers take in memory. Decodes nothing. */
    public static long characters(Map<String, String> headers) {
        if (headers instanceof LazyHeaders lazy) {
            return lazy.json().length();
        }
        long characters = 0;
        for (Entry<String, String> header : headers.entrySet()) {
            characters += header.getKey().length() + header.getValue().length();
        }
        return characters;
    }

    private static final class Reader {
        private final String json;
        private int at;

        Reader(String json) {
            this.json = json;
        }

        /**
         * Reads the object.
         *
         * @param headers receives the headers; {@code null}: they are only checked
         * @return whether there are any
         */
        boolean read(@Nullable Map<String, String> headers) {
            expect('{');
            if (peek() == '}') {
                return false;
            }
            while (true) {
                boolean isKept = headers != null;
                String name = text(isKept);
                expect(':');
                String value = peek() == '"' ? text(isKept) : other(isKept);
                if (headers != null) {
                    headers.put(name, value);
                }
                if (peek() == '}') {
                    return true;
                }
                expect(',');
            }
        }

        private char peek() {
            while (at < json.length() && Character.isWhitespace(json.charAt(at))) {
                at++;
            }
            if (at == json.length()) {
                throw malformed();
            }
            return json.charAt(at);
        }

        private void expect(char c) {
            if (peek() != c) {
                throw malformed();
            }
            at++;
        }

        /** Returns a text, or an empty one if it is only checked. */
        private String text(boolean isKept) {
            expect('"');
            int end = json.indexOf('"', at);
            if (end >= 0 && json.indexOf('\\', at, end) < 0) {
                String plain = isKept ? json.substring(at, end) : "";
                at = end + 1;
                return plain;
            }
            StringBuilder text = new StringBuilder();
            while (at < json.length()) {
                char c = json.charAt(at++);
                if (c == '"') {
                    return text.toString();
                }
                text.append(c == '\\' ? escaped() : c);
            }
            throw malformed();
        }

        private char escaped() {
            if (at >= json.length()) {
                throw malformed();
            }
            char c = json.charAt(at++);
            return switch (c) {
                case 'n' -> '\n';
                case 'r' -> '\r';
                case 't' -> '\t';
                case 'b' -> '\b';
                case 'f' -> '\f';
                case 'u' -> {
                    if (at + 4 > json.length()) {
                        throw malformed();
                    }
                    at += 4;
                    yield (char) Integer.parseInt(json, at - 4, at, 16);
                }
                default -> c;
            };
        }

        /** Returns the JSON text of a number, literal, array or object, or an empty one if it is only checked. */
        private String other(boolean isKept) {
            int start = at;
            int depth = 0;
            while (at < json.length()) {
                char c = json.charAt(at);
                if (c == '"') {
                    text(false);
                    continue;
                }
                if (depth == 0 && (c == ',' || c == '}')) {
                    return isKept ? json.substring(start, at).strip() : "";
                }
                depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
                at++;
            }
            throw malformed();
        }

        private IllegalArgumentException malformed() {
            return new IllegalArgumentException("headers are not a JSON object, at character " + at);
        }
    }
}
