package io.eventsql.runner.load;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Event;
import io.eventsql.benchmark.event.BenchmarkEvent;
import java.util.List;
import org.junit.jupiter.api.Test;

class EventSourceTest {

    @Test
    void events_default_areAccountCreatedEventsWithTheirNumbers() {
        EventSource source = new EventSource("0123abcd", 5, 0, List.of());

        List<Event> events = source.createEvents(KeyShare.withoutKeys(), true, 40, 3, 1_700_000_000_000_000L);

        assertThat(events)
                .extracting(event -> BenchmarkEvent.decode(event.value()))
                .containsExactly(
                        new BenchmarkEvent("0123abcd", 5, true, 40, 1_700_000_000_000_000L),
                        new BenchmarkEvent("0123abcd", 5, true, 41, 1_700_000_000_000_000L),
                        new BenchmarkEvent("0123abcd", 5, true, 42, 1_700_000_000_000_000L));
        assertThat(events).allSatisfy(event -> {
            assertThat(event.key()).isNull();
            assertThat(event.text()).contains("\"email\"", "\"name\"", "\"createdAt\"");
        });
    }

    @Test
    void events_fixedSize_haveThatSize() {
        EventSource source = new EventSource("0123abcd", 5, 1_234, List.of());

        assertThat(source.createEvents(KeyShare.withoutKeys(), false, 0, 1, 1)
                        .getFirst()
                        .value())
                .hasSize(1_234);
    }

    @Test
    void shares_withoutKeys_areOneForEachCaller() {
        assertThat(new EventSource("0123abcd", 5, 0, List.of()).splitKeys(4))
                .hasSize(4)
                .allSatisfy(share -> assertThat(share.nextKey()).isNull());
    }
}
