package io.eventsql.reader;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class HeadersJsonTest {
    @Test
    void decode_escapes_areResolved() {
        assertThat(HeadersJson.decode(
                        "{\"type\" : \"order_paid\", \"q\\\"\":\"\\\\ \\n\\t\\r\\b\\f \\/ \\u00e4\",\"e\":\"\"}"))
                .containsExactly(
                        Map.entry("type", "order_paid"), Map.entry("q\"", "\\ \n\t\r\b\f / ä"), Map.entry("e", ""));
    }

    @Test
    void decode_valuesThatAreNoText_areReturnedAsJson() {
        assertThat(HeadersJson.decode("{\"n\": 1.5 ,\"a\":[1,{\"b\":\"}\"}],\"t\":true,\"o\":{}}"))
                .containsExactly(
                        Map.entry("n", "1.5"),
                        Map.entry("a", "[1,{\"b\":\"}\"}]"),
                        Map.entry("t", "true"),
                        Map.entry("o", "{}"));
    }

    @Test
    void decode_emptyObject_isEmpty() {
        assertThat(HeadersJson.decode(" { } ")).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "[]", "1", "null", "{", "{\"a\"}", "{\"a\":\"b\"", "{\"a\":\"\\u00", "{a:1}"})
    void decode_noObject_isRejected(String json) {
        assertThatIllegalArgumentException().isThrownBy(() -> HeadersJson.decode(json));
    }
}
