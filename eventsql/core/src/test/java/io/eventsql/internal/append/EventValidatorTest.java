package io.eventsql.internal.append;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatNoException;

import io.eventsql.Event;
import io.eventsql.InvalidInputException;
import io.eventsql.Settings;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class EventValidatorTest {
    private static final String STREAM = "orders";

    private final EventValidator validator = new EventValidator(Settings.builder()
            .maxEventBytes(100)
            .maxKeyBytes(10)
            .maxHeadersBytes(20)
            .build());

    @Test
    void value_atTheLimit_isAcceptedAboveIsRejected() {
        assertThat(validator.validate(STREAM, Event.of(new byte[0])).value()).isEmpty();
        assertThat(validator.validate(STREAM, Event.of(new byte[100])).value()).hasSize(100);
        assertRejected(
                Event.of(new byte[101]), "event.value", "has 101 bytes", "limit is 100", "settings.maxEventBytes");
    }

    @Test
    void key_atTheLimit_isAcceptedAboveIsRejected() {
        assertThat(validator.validate(STREAM, Event.ofText("k", "")).key()).isEqualTo("k");
        assertThat(validator.validate(STREAM, Event.ofText("0123456789", "")).key())
                .isEqualTo("0123456789");
        assertRejected(
                Event.ofText("0123456789a", ""), "event.key", "has 11 bytes", "limit is 10", "settings.maxKeyBytes");
    }

    @Test
    void key_limit_countsBytesOfUtf8() {
        assertThatNoException()
                .isThrownBy(() -> validator.validate(STREAM, Event.ofText("\u00e4\u00e4\u00e4\u00e4\u00e4", "")));
        assertThatNoException()
                .isThrownBy(() -> validator.validate(STREAM, Event.ofText("\ud83d\ude00\ud83d\ude0012", "")));
        assertRejected(Event.ofText("\u00e4\u00e4\u00e4\u00e4\u00e41", ""), "event.key", "has 11 bytes");
        assertRejected(Event.ofText("\ud83d\ude00\ud83d\ude00123", ""), "event.key", "has 11 bytes");
    }

    @Test
    void key_empty_isRejected() {
        assertRejected(Event.ofText("", ""), "event.key", "empty");
    }

    @ParameterizedTest
    @ValueSource(strings = {"a\u0000b", "\u0000", "ab\u0000"})
    void texts_nulCharacter_isRejected(String text) {
        String position = "NUL character at position " + text.indexOf(0);
        assertRejected(Event.ofText(text, ""), "event.key", position);
        assertRejected(Event.ofText("").withHeader("a", text), "event.headers[a]", position);
        assertRejected(Event.ofText("").withHeader(text, "a"), "event.headers", position);
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
    void texts_halfASurrogatePair_isRejected(String text) {
        assertRejected(Event.ofText(text, ""), "event.key", "half a surrogate pair at position");
        assertRejected(Event.ofText("").withHeader("a", text), "event.headers[a]", "half a surrogate pair");
        assertRejected(Event.ofText("").withHeader(text, "a"), "event.headers", "half a surrogate pair");
    }

    @Test
    void headers_atTheLimit_areAcceptedAboveIsRejected() {
        Event atLimit = Event.ofText("").withHeader("a", "012345678901");
        assertThat(validator.validate(STREAM, atLimit).headers())
                .isEqualTo("{\"a\":\"012345678901\"}")
                .satisfies(json ->
                        assertThat(json.getBytes(StandardCharsets.UTF_8)).hasSize(20));
        assertRejected(
                Event.ofText("").withHeader("a", "0123456789012"),
                "event.headers",
                "limit is 20",
                "settings.maxHeadersBytes");
        assertRejected(
                Event.ofText("").withHeader("a", "\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4"),
                "event.headers",
                "as JSON");
    }

    @Test
    void headers_none_areNull() {
        assertThat(validator.validate(STREAM, Event.ofText("v")).headers()).isNull();
    }

    @Test
    void headers_emptyName_isRejected() {
        assertRejected(Event.ofText("").withHeader("", "a"), "event.headers", "empty name");
    }

    @Test
    void headers_emptyValue_isAccepted() {
        assertThat(validator
                        .validate(STREAM, Event.ofText("").withHeader("a", ""))
                        .headers())
                .isEqualTo("{\"a\":\"\"}");
    }

    @Test
    void headers_veryLongName_isShownShortened() {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() ->
                        validator.validate(STREAM, Event.ofText("").withHeader("n".repeat(1_000_000), "\u0000")))
                .satisfies(e -> assertThat(e.getMessage()).hasSizeLessThan(300));
    }

    @Test
    void bytes_countKeyValueAndHeadersAsTheyAreSent() {
        EventValidator wide = new EventValidator(Settings.defaults());
        int nothing = wide.validate(STREAM, Event.of(new byte[0])).bytes();
        assertThat(nothing).as("the objects of a call").isEqualTo(256);
        assertThat(wide.validate(STREAM, Event.of(new byte[50])).bytes()).isEqualTo(nothing + 50);
        assertThat(wide.validate(STREAM, Event.of("\u65e5\u672c", new byte[50])).bytes())
                .isEqualTo(nothing + 56);
        assertThat(wide.validate(STREAM, new Event(null, new byte[50], Map.of("a", "\u65e5\u672c")))
                        .bytes())
                .isEqualTo(nothing + 50 + "{\"a\":\"\u65e5\u672c\"}".getBytes(StandardCharsets.UTF_8).length);
    }

    @Test
    void validate_missingArguments_areRejectedByName() {
        List<Event> events = new ArrayList<>(List.of(Event.ofText("a")));
        events.add(null);
        assertThatMissing("stream", () -> validator.validate(null, Event.ofText("a")));
        assertThatMissing("event", () -> validator.validate(STREAM, null));
        assertThatMissing("stream", () -> validator.validateAll(null, List.of()));
        assertThatMissing("events", () -> validator.validateAll(STREAM, null));
        assertThatMissing("events[1]", () -> validator.validateAll(STREAM, events));
    }

    private static void assertThatMissing(String field, ThrowingCallable call) {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(call)
                .withMessage(field + " must not be null")
                .satisfies(e -> assertThat(e.field()).isEqualTo(field))
                .satisfies(e -> assertThat(e.setting()).isEmpty());
    }

    @Test
    void validate_limitOfASetting_namesTheSetting() {
        Event large = Event.of("k", new byte[101]);
        Event longKey = Event.ofText("0123456789a", "");
        Event headers = Event.ofText("").withHeader("a", "0123456789012");
        assertThatSetting("maxEventBytes", () -> validator.validate(STREAM, large));
        assertThatSetting("maxKeyBytes", () -> validator.validate(STREAM, longKey));
        assertThatSetting("maxHeadersBytes", () -> validator.validate(STREAM, headers));
        EventValidator small = new EventValidator(
                Settings.builder().maxBatchEvents(2).maxBatchBytes(1_024).build());
        assertThatSetting("maxBatchEvents", () -> small.validateAll(STREAM, Collections.nCopies(3, Event.ofText("x"))));
        assertThatSetting(
                "maxBatchBytes", () -> small.validateAll(STREAM, Collections.nCopies(2, Event.of(new byte[600]))));
    }

    private static void assertThatSetting(String setting, ThrowingCallable call) {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(call)
                .withMessageEndingWith("(settings." + setting + ")")
                .satisfies(e -> assertThat(e.setting()).contains(setting));
    }

    private void assertRejected(Event event, String field, String... inMessage) {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> validator.validate(STREAM, event))
                .withMessageStartingWith(field + " ")
                .satisfies(e -> assertThat(e.field()).isEqualTo(field))
                .satisfies(e -> assertThat(e.getMessage()).contains(inMessage));
    }
}
