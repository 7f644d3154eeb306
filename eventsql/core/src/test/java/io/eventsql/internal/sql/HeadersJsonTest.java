package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.entry;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The seed of the random part is printed on failure and can be set with {@code -Deventsql.test.seed}. */
class HeadersJsonTest {
    private static final long SEED = Long.getLong("eventsql.test.seed", System.nanoTime());

    @Test
    void encode_plainTexts_isAnObjectInTheirOrder() {
        Map<String, String> headers = new LinkedHashMap<>();
        headers.put("type", "order");
        headers.put("version", "2");
        assertThat(HeadersJson.encode(headers)).isEqualTo("{\"type\":\"order\",\"version\":\"2\"}");
        assertThat(HeadersJson.encode(Map.of())).isEqualTo("{}");
    }

    @Test
    void encode_specialCharacters_areEscapedAsJsonAsks() {
        assertThat(HeadersJson.encode(Map.of("a\"b", "\\ \n \r \t \b \f \u0001 \u001f /")))
                .isEqualTo("{\"a\\\"b\":\"\\\\ \\n \\r \\t \\u0008 \\u000c \\u0001 \\u001f /\"}");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                " ",
                "plain",
                "\"",
                "\\",
                "\\\"",
                "\\u0041",
                "quote \" in the middle",
                "ends with backslash\\",
                "\u0001\u0002\u001e\u001f\u007f\u0080",
                "\b\f\n\r\t",
                "{\"json\":[1,2,{\"a\":\"b\"}]}",
                "\u00e4\u00f6\u00fc \u65e5\u672c\u8a9e",
                "\ud83d\ude00\ud83c\udff3\ufe0f\u200d\ud83c\udf08",
                "\u2028\u2029\ufeff\uffff",
                "',;:}{][",
            })
    void decode_encoded_isEqual(String text) {
        Map<String, String> asValue = Map.of("name", text, "other", "x");
        assertThat(HeadersJson.decode(HeadersJson.encode(asValue))).isEqualTo(asValue);
        Map<String, String> asName = Map.of(text, "value", text + "2", text);
        assertThat(HeadersJson.decode(HeadersJson.encode(asName))).isEqualTo(asName);
    }

    @Test
    void decode_randomTexts_areEqual() {
        Random random = new Random(SEED);
        for (int round = 0; round < 2_000; round++) {
            Map<String, String> headers = new LinkedHashMap<>();
            for (int i = random.nextInt(5); i > 0; i--) {
                headers.put(randomText(random), randomText(random));
            }
            String json = HeadersJson.encode(headers);
            assertThat(HeadersJson.decode(json))
                    .as("seed %d, round %d", SEED, round)
                    .isEqualTo(headers);
            assertThat(HeadersJson.decodeLazily(json))
                    .as("seed %d, round %d", SEED, round)
                    .isEqualTo(headers)
                    .hasSameHashCodeAs(headers);
        }
    }

    private static String randomText(Random random) {
        StringBuilder text = new StringBuilder();
        for (int i = random.nextInt(12); i > 0; i--) {
            switch (random.nextInt(4)) {
                case 0 -> text.append((char) (1 + random.nextInt(0x7f)));
                case 1 -> text.append("\"\\{}[]:,\n\u0000".charAt(random.nextInt(9)));
                case 2 -> text.appendCodePoint(0x10000 + random.nextInt(0x100000));
                default -> text.append((char) (0x80 + random.nextInt(0xd800 - 0x80)));
            }
        }
        return text.toString();
    }

    @Test
    void decode_whatOthersWrote_isReadToo() {
        assertThat(HeadersJson.decode(" {\n \"a\" : \"x\" ,\t\"b\":\"\\u00e4\\ud83d\\ude00\\/\\b\\f\" } "))
                .containsExactly(entry("a", "x"), entry("b", "\u00e4\ud83d\ude00/\b\f"));
    }

    @Test
    void decode_valuesThatAreNoTexts_areTheirOwnJson() {
        assertThat(HeadersJson.decode(
                        "{\"n\":-1.5e3,\"t\":true,\"z\":null,\"o\":{\"x\":[\"}\",1]},\"l\":[1, \"a,b\"] ,\"s\":\"x\"}"))
                .containsExactly(
                        entry("n", "-1.5e3"),
                        entry("t", "true"),
                        entry("z", "null"),
                        entry("o", "{\"x\":[\"}\",1]}"),
                        entry("l", "[1, \"a,b\"]"),
                        entry("s", "x"));
    }

    @Test
    void decode_emptyObject_isEmpty() {
        assertThat(HeadersJson.decode("{}")).isEmpty();
        assertThat(HeadersJson.decode(" { } ")).isEmpty();
    }

    @Test
    void decode_result_cannotBeChanged() {
        Map<String, String> headers = HeadersJson.decode("{\"a\":\"b\"}");
        assertThatThrownBy(() -> headers.put("c", "d")).isInstanceOf(UnsupportedOperationException.class);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                " ",
                "null",
                "[]",
                "\"text\"",
                "7",
                "{",
                "{\"a\"",
                "{\"a\":",
                "{\"a\":\"b\"",
                "{\"a\":\"b",
                "{\"a\":\"b\\",
                "{\"a\":\"\\u12\"}",
                "{\"a\":\"\\u12zz\"}",
                "{\"a\" \"b\"}",
                "{a:\"b\"}",
                "{\"a\":\"b\" \"c\":\"d\"}",
                "{\"a\":\"b\",}",
                "{,}",
                "{\"a\":[1,2}",
                "{\"a\":12",
            })
    void decode_malformed_isRefused(String json) {
        assertThatThrownBy(() -> HeadersJson.decode(json)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> HeadersJson.decodeLazily(json)).isInstanceOf(IllegalArgumentException.class);
    }

    /** What the lazy form accepts must not fail in a handler, so both forms accept the same texts. */
    @Test
    void decodeLazily_objectsWithErrorsAtRandom_acceptsWhatDecodeAccepts() {
        Random random = new Random(SEED);
        String valid = "{\"a\":\"x\\u00e4\\n\",\"n\":-1.5,\"o\":{\"x\":[\"}\",1]}, \"s\" : \"\"}";
        for (int round = 0; round < 20_000; round++) {
            StringBuilder changed = new StringBuilder(valid);
            for (int i = random.nextInt(3); i >= 0; i--) {
                int at = random.nextInt(changed.length());
                char c = "\"\\{}[]:,u0 x".charAt(random.nextInt(12));
                switch (random.nextInt(3)) {
                    case 0 -> changed.deleteCharAt(at);
                    case 1 -> changed.insert(at, c);
                    default -> changed.setCharAt(at, c);
                }
            }
            String json = changed.toString();
            assertThat(decoded(HeadersJson::decodeLazily, json))
                    .as("seed %d, round %d: %s", SEED, round, json)
                    .isEqualTo(decoded(HeadersJson::decode, json));
        }
    }

    /** Returns the headers; the exception's message if they are refused. */
    private static Object decoded(Function<String, Map<String, String>> decoder, String json) {
        Map<String, String> headers;
        try {
            headers = decoder.apply(json);
        } catch (IllegalArgumentException e) {
            return e.getMessage();
        }
        return Map.copyOf(headers); // whatever fails here fails in a handler
    }

    @Test
    void decodeLazily_object_isAnUnmodifiableMap() {
        Map<String, String> headers = HeadersJson.decodeLazily("{\"a\":\"b\",\"a\":\"c\",\"d\":1}");

        assertThat(headers).hasSize(2).containsExactly(entry("a", "c"), entry("d", "1"));
        assertThat(headers.get("a")).isEqualTo("c");
        assertThat(headers).containsKey("d").doesNotContainKey("e").hasToString("{a=c, d=1}");
        assertThatThrownBy(() -> headers.put("c", "d")).isInstanceOf(UnsupportedOperationException.class);
        assertThatThrownBy(() -> headers.remove("a")).isInstanceOf(UnsupportedOperationException.class);
        assertThatThrownBy(headers::clear).isInstanceOf(UnsupportedOperationException.class);
        assertThat(HeadersJson.decodeLazily(" { } ")).isEmpty();
    }

    @Test
    void characters_lazyHeaders_areThoseOfTheirJson() {
        assertThat(HeadersJson.characters(HeadersJson.decodeLazily("{\"a\":\"bc\"}")))
                .isEqualTo(10);
        assertThat(HeadersJson.characters(Map.of("a", "bc"))).isEqualTo(3);
        assertThat(HeadersJson.characters(Map.of())).isZero();
    }
}
