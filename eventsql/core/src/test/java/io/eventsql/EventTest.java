package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** The record itself; its limits are {@code EventValidatorTest}'s. */
class EventTest {

    @Test
    void of_eachForm_holdsWhatWasGiven() {
        byte[] value = {1, 2, 3};
        assertThat(Event.of(value)).isEqualTo(new Event(null, value, Map.of()));
        assertThat(Event.of("k", value)).isEqualTo(new Event("k", value, Map.of()));
        assertThat(Event.ofText("h\u00e9llo")).isEqualTo(Event.of("h\u00e9llo".getBytes(StandardCharsets.UTF_8)));
        assertThat(Event.ofText("k", "h\u00e9llo").text()).isEqualTo("h\u00e9llo");
    }

    @Test
    void new_nulls_areRejectedByName() {
        Map<String, String> nullName = new HashMap<>();
        nullName.put(null, "v");
        assertRejected("event.value", () -> Event.of(null));
        assertRejected("event.value", () -> Event.of("k", null));
        assertRejected("event.value", () -> Event.ofText(null));
        assertRejected("event.value", () -> Event.ofText("k", null));
        assertRejected("event.key", () -> Event.of(null, new byte[0]));
        assertRejected("event.key", () -> Event.ofText(null, "v"));
        assertRejected("event.headers", () -> new Event("k", new byte[0], null));
        assertRejected("event.headers", () -> new Event("k", new byte[0], nullName));
        assertRejected("event.headers", () -> Event.ofText("v").withHeader(null, "v"));
        assertRejected("event.headers[type]", () -> Event.ofText("v").withHeader("type", null));
        assertRejected("event.headers", () -> Event.ofText("v").withHeader("line\nbreak", null));
    }

    @Test
    void tombstone_hasAKeyAndNoValue_andKeepsThatInCopies() {
        Event tombstone = Event.tombstone("k");
        assertThat(tombstone.isTombstone()).isTrue();
        assertThat(tombstone.value()).isEmpty();
        assertThat(tombstone.text()).isEmpty();
        assertThat(tombstone)
                .isNotEqualTo(Event.of("k", new byte[0]))
                .hasToString("Event[key=k, tombstone, headers={}]");
        assertThat(tombstone.withHeader("a", "1").withHeaders(Map.of("b", "2")))
                .isEqualTo(new Event("k", new byte[0], Map.of("b", "2"), true));
        assertThat(Event.of("k", new byte[0]).isTombstone()).isFalse();
        assertThat(Event.ofText("k", "null").isTombstone()).isFalse();
        assertRejected("event.key", () -> Event.tombstone(null));
        assertRejected("event.key", () -> new Event(null, new byte[0], Map.of(), true));
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> new Event("k", new byte[1], Map.of(), true))
                .satisfies(e -> assertThat(e.field()).isEqualTo("event.value"));
    }

    private static void assertRejected(String field, ThrowingCallable call) {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(call)
                .withMessageStartingWith(field + " must not ")
                .withMessageContaining("null")
                .satisfies(e -> assertThat(e.field()).isEqualTo(field));
    }

    @Test
    void withHeader_addsAndReplaces() {
        Event event =
                Event.ofText("v").withHeader("a", "1").withHeader("b", "2").withHeader("a", "3");
        assertThat(event.headers()).containsOnly(Map.entry("a", "3"), Map.entry("b", "2"));
        assertThat(Event.ofText("v").headers()).isEmpty();
    }

    @Test
    void headers_givenMapChangedAfterwards_stayAsTheyWere() {
        Map<String, String> given = new HashMap<>(Map.of("a", "1"));
        Event event = new Event(null, new byte[0], given);
        given.put("a", "2");
        assertThat(event.headers()).containsOnly(Map.entry("a", "1"));
        assertThatThrownBy(() -> event.headers().put("b", "2")).isInstanceOf(UnsupportedOperationException.class);
    }

    @Test
    void equals_comparesContents() {
        Event event = Event.ofText("k", "v").withHeader("a", "1");
        assertThat(event)
                .isEqualTo(Event.ofText("k", "v").withHeader("a", "1"))
                .hasSameHashCodeAs(Event.ofText("k", "v").withHeader("a", "1"))
                .isNotEqualTo(Event.ofText("k", "w").withHeader("a", "1"))
                .isNotEqualTo(Event.ofText("l", "v").withHeader("a", "1"))
                .isNotEqualTo(Event.ofText("k", "v"));
    }

    @Test
    void toString_showsTheSizeInsteadOfTheValue() {
        assertThat(Event.ofText("k", "secret")).hasToString("Event[key=k, value=6 bytes, headers={}]");
    }
}
