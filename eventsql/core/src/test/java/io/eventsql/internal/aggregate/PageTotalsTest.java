package io.eventsql.internal.aggregate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.ContinuousAggregate.Measure;
import io.eventsql.ContinuousAggregateSpec;
import io.eventsql.EventFailedException;
import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.ValueState;
import io.eventsql.internal.sql.AggregateRows.Partial;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class PageTotalsTest {
    private static final ContinuousAggregateSpec SPEC =
            ContinuousAggregateSpec.of("a", "s").withWindow(Duration.ofSeconds(10));

    private final AtomicInteger offsets = new AtomicInteger();

    private StoredEvent event(String key, String text, String time, ValueState state) {
        return new StoredEvent(
                new EventPosition("s", 0, 0, offsets.getAndIncrement()),
                key,
                text.getBytes(StandardCharsets.UTF_8),
                Map.of(),
                Instant.parse(time),
                state);
    }

    private StoredEvent event(String key, String text, String time) {
        return event(key, text, time, ValueState.PRESENT);
    }

    private static long micros(String time) {
        return Instant.parse(time).getEpochSecond() * 1_000_000;
    }

    @Test
    void windows_edgesAndTimesBefore1970_areThoseOfTheEpoch() throws EventFailedException {
        List<Partial> partials = PageTotals.of(
                SPEC,
                List.of(
                        event("k", "", "2026-01-01T00:00:09.999999Z"),
                        event("k", "", "2026-01-01T00:00:10Z"),
                        event("k", "", "2026-01-01T00:00:19Z"),
                        event("k", "", "1969-12-31T23:59:59.999999Z")));
        assertThat(partials)
                .extracting(Partial::windowStart, Partial::events)
                .containsExactlyInAnyOrder(
                        org.assertj.core.groups.Tuple.tuple(micros("2026-01-01T00:00:00Z"), 1L),
                        org.assertj.core.groups.Tuple.tuple(micros("2026-01-01T00:00:10Z"), 2L),
                        org.assertj.core.groups.Tuple.tuple(micros("1969-12-31T23:59:50Z"), 1L));
    }

    @Test
    void measures_numbersOfAllKinds_areExact() throws EventFailedException {
        List<Number> numbers =
                List.of(1, 2L, (short) 3, new BigDecimal("0.1"), 0.2, 0.5f, new java.math.BigInteger("7"));
        AtomicInteger next = new AtomicInteger();
        ContinuousAggregateSpec spec =
                SPEC.withMeasure("n", event -> event.text().isEmpty() ? null : numbers.get(next.getAndIncrement()));
        List<StoredEvent> events = numbers.stream()
                .map(n -> event("k", "x", "2026-01-01T00:00:00Z"))
                .collect(java.util.stream.Collectors.toCollection(java.util.ArrayList::new));
        events.add(event("k", "", "2026-01-01T00:00:00Z"));
        Partial partial = PageTotals.of(spec, events).getFirst();
        assertThat(partial.events()).isEqualTo(8);
        assertThat(partial.measures())
                .containsExactly(new Measure(7, new BigDecimal("13.8"), new BigDecimal("0.1"), new BigDecimal("7")));
        assertThat(partial.measures().getFirst().average())
                .isCloseTo(new BigDecimal("1.9714"), org.assertj.core.data.Offset.offset(new BigDecimal("0.0001")));
    }

    /** The statement that stores the page would fail, and not say which event has them. */
    @Test
    void numbersAndTimes_outsideOfTheDatabasesRange_failTheirEvent() {
        for (String number : List.of("1e131072", "1e-16384", "1e999999999")) {
            assertFails(SPEC.withMeasure("cents", event -> new BigDecimal(number)), "the aggregate's measure cents");
        }
        for (String time : List.of("-4701-01-01T00:00:00Z", "+294001-01-01T00:00:00Z", "+900000000-01-01T00:00:00Z")) {
            assertFails(SPEC.withTime(event -> Instant.parse(time)), "the aggregate's time must be between");
        }
    }

    private void assertFails(ContinuousAggregateSpec spec, String message) {
        StoredEvent event = event("k", "", "2026-01-01T00:00:00Z");
        assertThatExceptionOfType(EventFailedException.class)
                .isThrownBy(() -> PageTotals.of(spec, List.of(event)))
                .satisfies(e -> assertThat(e.position()).isEqualTo(event.position()))
                .havingCause()
                .withMessageContaining(message);
    }

    /** What the database can store is accepted up to the limits. */
    @Test
    void numbersAndTimes_atTheLimits_areAccepted() throws EventFailedException {
        ContinuousAggregateSpec spec = SPEC.withTime(event -> Instant.parse("+293999-12-31T23:59:59Z"))
                .withMeasure("large", event -> new BigDecimal("1e131071"))
                .withMeasure("small", event -> new BigDecimal("1e-16383"));
        assertThat(PageTotals.of(spec, List.of(event("k", "", "2026-01-01T00:00:00Z"))))
                .hasSize(1);
    }

    /** A statement cannot add to a row twice. */
    @Test
    void keys_endInHalvesOfCharacters_areOneAsInTheDatabase() throws EventFailedException {
        List<Partial> partials = PageTotals.of(
                SPEC.withKey(event -> event.text().substring(0, 2)),
                List.of(
                        event("k", "a\uD83D\uDE00", "2026-01-01T00:00:00Z"),
                        event("k", "a\uD83C\uDF55", "2026-01-01T00:00:01Z")));
        assertThat(partials)
                .extracting(Partial::key, Partial::events)
                .containsExactly(org.assertj.core.groups.Tuple.tuple("a?", 2L));
    }

    @Test
    void events_withoutValueOrFiltered_addNothing() throws EventFailedException {
        List<Partial> partials = PageTotals.of(
                SPEC.withFilter(event -> !event.text().equals("no")),
                List.of(
                        event("k", "", "2026-01-01T00:00:00Z", ValueState.TOMBSTONE),
                        event("k", "", "2026-01-01T00:00:00Z", ValueState.ERASED),
                        event("k", "no", "2026-01-01T00:00:00Z")));
        assertThat(partials).isEmpty();
    }

    @Test
    void functionOrKey_fails_namesItsEvent() {
        StoredEvent good = event("k", "1", "2026-01-01T00:00:00Z");
        StoredEvent bad = event("k", "x", "2026-01-01T00:00:00Z");
        assertThatExceptionOfType(EventFailedException.class)
                .isThrownBy(() -> PageTotals.of(
                        SPEC.withMeasure("n", event -> Integer.parseInt(event.text())), List.of(good, bad)))
                .matches(e -> e.position().equals(bad.position()));
        assertThatExceptionOfType(EventFailedException.class)
                .isThrownBy(() -> PageTotals.of(SPEC.withMeasure("n", event -> Double.NaN), List.of(good)));
        assertThatExceptionOfType(EventFailedException.class)
                .isThrownBy(() -> PageTotals.of(SPEC.withKey(event -> "é".repeat(1_001)), List.of(good)))
                .withMessageContaining("2000 bytes");
        assertThatExceptionOfType(EventFailedException.class)
                .isThrownBy(() -> PageTotals.of(SPEC.withTime(event -> null), List.of(good)))
                .withMessageContaining("returned null");
    }
}
