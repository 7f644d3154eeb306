package io.eventsql.internal.sql;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Map.Entry;

/**
 * Encodes headers as the JSON object that is stored, with string values only (RFC 8259), in a form that PostgreSQL's
 * JSON operators accept. Decodes what {@link #encode} wrote, and any other JSON object.
 */
public final class HeadersJson {
    private HeadersJson() {}

    /** Returns the headers as a JSON object. NUL characters and lone surrogates must have been rejected before. */
    public static String encode(Map<String, String> headers) {
        StringBuilder json = new StringBuilder(headers.size() * 32).append('{');
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
        return new Reader(json).object();
    }

    private static final class Reader {
        private final String json;
        private int at;

        Reader(String json) {
            this.json = json;
        }

        Map<String, String> object() {
            Map<String, String> headers = new LinkedHashMap<>();
            expect('{');
            if (peek() == '}') {
                return Map.of();
            }
            while (true) {
                String name = text();
                expect(':');
                headers.put(name, peek() == '"' ? text() : other());
                if (peek() == '}') {
                    return java.util.Collections.unmodifiableMap(headers);
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

        private String text() {
            expect('"');
            int end = json.indexOf('"', at);
            int escape = json.indexOf('\\', at);
            if (end >= 0 && (escape < 0 || escape > end)) {
                String plain = json.substring(at, end);
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

        /** Returns the JSON text of a number, literal, array or object. */
        private String other() {
            int start = at;
            int depth = 0;
            while (at < json.length()) {
                char c = json.charAt(at);
                if (c == '"') {
                    text();
                    continue;
                }
                if (depth == 0 && (c == ',' || c == '}')) {
                    return json.substring(start, at).strip();
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
