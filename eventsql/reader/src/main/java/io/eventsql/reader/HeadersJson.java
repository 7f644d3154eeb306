package io.eventsql.reader;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/** Decodes headers, a JSON object (RFC 8259). */
final class HeadersJson {
    private HeadersJson() {}

    /**
     * Returns the headers of a JSON object, in their order. Values that are not strings are returned as their JSON text.
     *
     * @throws IllegalArgumentException if the text is not a JSON object
     */
    static Map<String, String> decode(String json) {
        Map<String, String> headers = new LinkedHashMap<>();
        new Reader(json).read(headers);
        return Collections.unmodifiableMap(headers);
    }

    private static final class Reader {
        private final String json;
        private int at;

        Reader(String json) {
            this.json = json;
        }

        /** Reads the object into the given map. */
        void read(Map<String, String> headers) {
            expect('{');
            if (peek() == '}') {
                return;
            }
            while (true) {
                String name = text();
                expect(':');
                headers.put(name, peek() == '"' ? text() : other());
                if (peek() == '}') {
                    return;
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
            if (end >= 0) {
                String plain = json.substring(at, end);
                if (plain.indexOf('\\') < 0) {
                    at = end + 1;
                    return plain;
                }
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
