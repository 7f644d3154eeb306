package io.eventsql.flink.sink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;

import io.eventsql.Settings;
import io.eventsql.internal.sql.HeadersJson;
import java.io.IOException;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class EventEncoderTest {
    private final EventEncoder encoder = new EventEncoder(8);

    @Test
    void limits_areThoseOfTheLibrary() {
        assertThat(EventEncoder.KEY_BYTES_MAX).isEqualTo(Settings.DEFAULT_MAX_KEY_BYTES);
        assertThat(EventEncoder.HEADERS_BYTES_MAX).isEqualTo(Settings.DEFAULT_MAX_HEADERS_BYTES);
        assertThat(EventSqlSinkBuilder.DEFAULT_EVENT_BYTES_MAX).isEqualTo(Settings.DEFAULT_MAX_EVENT_BYTES);
        assertThat(EventBuffer.BATCH_EVENTS_MAX).isEqualTo(Settings.DEFAULT_MAX_BATCH_EVENTS);
        assertThat(EventBuffer.BATCH_BYTES_MAX).isEqualTo(Settings.DEFAULT_MAX_BATCH_BYTES);
    }

    @Test
    void headers_areEncodedAsByTheLibrary() throws IOException {
        Map<String, String> headers = new LinkedHashMap<>();
        headers.put("b\"\\", "line\n\r\t\u0001\u001f");
        headers.put("a", "ä😀");
        assertThat(encoder.encode(new SinkEvent("k", new byte[0], headers)).headers())
                .isEqualTo(HeadersJson.encode(headers));
        assertThat(encoder.encode(new SinkEvent("k", null)).headers()).isNull();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "value | event.value has 9 bytes; the limit is 8",
                "empty key | event.key is empty",
                "long key | event.key has 1025 bytes; the limit is 1024",
                "NUL | event.key has a NUL character at position 1",
                "surrogate | event.key has half a surrogate pair at position 0",
                "no key | must have a key",
                "long headers | as JSON; the limit is 16384",
                "empty name | event.headers has a header without a name",
                "null header | event.headers has a header without a value",
                "NUL header | event.headers has a NUL character at position 0"
            })
    void invalid_isRejectedByName(String what, String message) {
        Map<String, String> nullHeader = new HashMap<>();
        nullHeader.put("a", null);
        SinkEvent event = switch (what) {
            case "value" -> SinkEvent.ofText("k", "123456789");
            case "empty key" -> SinkEvent.ofText("", "v");
            case "long key" -> SinkEvent.ofText("x".repeat(1_025), "v");
            case "NUL" -> SinkEvent.ofText("a\0", "v");
            case "surrogate" -> SinkEvent.ofText("\ud800a", "v");
            case "no key" -> new SinkEvent(null, null);
            case "long headers" -> new SinkEvent("k", new byte[1], Map.of("a", "x".repeat(16 << 10)));
            case "empty name" -> new SinkEvent("k", new byte[1], Map.of("", "x"));
            case "null header" -> new SinkEvent("k", new byte[1], nullHeader);
            default -> new SinkEvent("k", new byte[1], Map.of("a", "\0"));
        };
        assertThatIOException().isThrownBy(() -> encoder.encode(event)).withMessageContaining(message);
    }
}
