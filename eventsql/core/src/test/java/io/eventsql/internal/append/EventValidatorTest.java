package io.eventsql.internal.append;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatNoException;

import io.eventsql.Event;
import io.eventsql.InvalidInputException;
import io.eventsql.Settings;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class EventValidatorTest {
    private final EventValidator validator = new EventValidator(Settings.builder()
            .maxEventBytes(100)
            .maxKeyBytes(10)
            .maxHeadersBytes(20)
            .build());

    @Test
    void value_atTheLimit_isAcceptedAboveRefused() {
        assertThat(validator.validate(Event.of(new byte[0])).value()).isEmpty();
        assertThat(validator.validate(Event.of(new byte[100])).value()).hasSize(100);
        assertRefused(
                Event.of(new byte[101]), "event.value", "has 101 bytes", "limit is 100", "settings.maxEventBytes");
    }

    @Test
    void key_atTheLimit_isAcceptedAboveRefused() {
        assertThat(validator.validate(Event.ofText("k", "")).key()).isEqualTo("k");
        assertThat(validator.validate(Event.ofText("0123456789", "")).key()).isEqualTo("0123456789");
        assertRefused(
                Event.ofText("0123456789a", ""), "event.key", "has 11 bytes", "limit is 10", "settings.maxKeyBytes");
    }

    @Test
    void key_limit_countsBytesOfUtf8() {
        assertThatNoException()
                .isThrownBy(() -> validator.validate(Event.ofText("\u00e4\u00e4\u00e4\u00e4\u00e4", "")));
        assertThatNoException().isThrownBy(() -> validator.validate(Event.ofText("\ud83d\ude00\ud83d\ude0012", "")));
        assertRefused(Event.ofText("\u00e4\u00e4\u00e4\u00e4\u00e41", ""), "event.key", "has 11 bytes");
        assertRefused(Event.ofText("\ud83d\ude00\ud83d\ude00123", ""), "event.key", "has 11 bytes");
    }

    @Test
    void key_empty_isRefused() {
        assertRefused(Event.ofText("", ""), "event.key", "empty");
    }

    @ParameterizedTest
    @ValueSource(strings = {"a\u0000b", "\u0000", "ab\u0000"})
    void texts_nulCharacter_isRefused(String text) {
        String position = "NUL character at position " + text.indexOf(0);
        assertRefused(Event.ofText(text, ""), "event.key", position);
        assertRefused(Event.ofText("").withHeader("a", text), "event.headers[a]", position);
        assertRefused(Event.ofText("").withHeader(text, "a"), "event.headers", position);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "\ud83d",
                "a\ud83d",
                "\ude00",
                "\ude00\ud83d",
                "\ud83da",
                "\ud83d\ude00\ude00",
                "\ud83d\ud83d\ude00"
            })
    void texts_halfASurrogatePair_isRefused(String text) {
        assertRefused(Event.ofText(text, ""), "event.key", "half a surrogate pair at position");
        assertRefused(Event.ofText("").withHeader("a", text), "event.headers[a]", "half a surrogate pair");
        assertRefused(Event.ofText("").withHeader(text, "a"), "event.headers", "half a surrogate pair");
    }

    @Test
    void headers_atTheLimit_areAcceptedAboveRefused() {
        Event atLimit = Event.ofText("").withHeader("a", "012345678901");
        assertThat(validator.validate(atLimit).headers())
                .isEqualTo("{\"a\":\"012345678901\"}")
                .satisfies(json ->
                        assertThat(json.getBytes(StandardCharsets.UTF_8)).hasSize(20));
        assertRefused(
                Event.ofText("").withHeader("a", "0123456789012"),
                "event.headers",
                "limit is 20",
                "settings.maxHeadersBytes");
        assertRefused(
                Event.ofText("").withHeader("a", "\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4"),
                "event.headers",
                "as JSON");
    }

    @Test
    void headers_none_areNull() {
        assertThat(validator.validate(Event.ofText("v")).headers()).isNull();
    }

    @Test
    void headers_emptyName_isRefused() {
        assertRefused(Event.ofText("").withHeader("", "a"), "event.headers", "empty name");
    }

    @Test
    void headers_emptyValue_isAccepted() {
        assertThat(validator.validate(Event.ofText("").withHeader("a", "")).headers())
                .isEqualTo("{\"a\":\"\"}");
    }

    @Test
    void headers_veryLongName_isShownShortened() {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> validator.validate(Event.ofText("").withHeader("n".repeat(1_000_000), "\u0000")))
                .satisfies(e -> assertThat(e.getMessage()).hasSizeLessThan(300));
    }

    @Test
    void bytes_countKeyValueAndHeadersAsTheyAreSent() {
        EventValidator wide = new EventValidator(Settings.defaults());
        int nothing = wide.validate(Event.of(new byte[0])).bytes();
        assertThat(wide.validate(Event.of(new byte[50])).bytes()).isEqualTo(nothing + 50);
        assertThat(wide.validate(Event.of("\u65e5\u672c", new byte[50])).bytes())
                .isEqualTo(nothing + 56);
        assertThat(wide.validate(new Event(null, new byte[50], Map.of("a", "\u65e5\u672c")))
                        .bytes())
                .isEqualTo(nothing + 50 + "{\"a\":\"\u65e5\u672c\"}".getBytes(StandardCharsets.UTF_8).length);
    }

    private void assertRefused(Event event, String field, String... inMessage) {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> validator.validate(event))
                .withMessageStartingWith(field + " ")
                .satisfies(e -> assertThat(e.field()).isEqualTo(field))
                .satisfies(e -> assertThat(e.getMessage()).contains(inMessage));
    }
}
