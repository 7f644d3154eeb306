package io.eventsql.internal.consume;

import static io.eventsql.internal.consume.Fixtures.event;
import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.EventPosition;
import io.eventsql.UndecodableEventException;
import java.util.Map;
import org.junit.jupiter.api.Test;

class UndecodableEventsTest {
    private final UndecodableEvents undecodable = new UndecodableEvents();

    private static UndecodableEventException failure(long offset) {
        return new UndecodableEventException(
                new EventPosition("orders", 0, 0, offset), "[1]", new IllegalArgumentException("no object"));
    }

    @Test
    void headersJson_undecodable_isAsStored() {
        undecodable.add(failure(5));

        assertThat(undecodable.headersJson(event(5, null))).isEqualTo("[1]");
        assertThat(undecodable.headersJson(event(6, null))).isNull();
    }

    @Test
    void record_fetchedAgainAndDecoded_isForgotten() {
        undecodable.record(0, 10, Map.of(5L, failure(5)));
        assertThat(undecodable.contains(event(5, null))).isTrue();

        undecodable.record(0, 10, Map.of());

        assertThat(undecodable.contains(event(5, null))).isFalse();
    }

    @Test
    void remove_passed_isForgotten() {
        undecodable.record(0, 10, Map.of(5L, failure(5), 7L, failure(7)));

        undecodable.remove(0, 6);

        assertThat(undecodable.contains(event(5, null))).isFalse();
        assertThat(undecodable.contains(event(7, null))).isTrue();
    }
}
