package io.eventsql.internal.consume;

import static io.eventsql.internal.consume.Fixtures.event;
import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.StoredEvent;
import io.eventsql.internal.consume.KeyQueues.Lane;
import org.junit.jupiter.api.Test;

class KeyQueuesTest {
    private final KeyQueues queues = new KeyQueues(2);

    @Test
    void add_sameKey_sharesALaneInOrder() {
        StoredEvent first = event(0, "a");
        StoredEvent second = event(1, "a");
        Lane lane = queues.add(first);

        assertThat(queues.add(second)).isNull();
        assertThat(queues.poll(lane)).isSameAs(first);
        assertThat(queues.poll(lane)).isSameAs(second);
        assertThat(queues.poll(lane)).isNull();
    }

    @Test
    void add_laneIsUsedUp_startsANewOne() {
        Lane lane = queues.add(event(0, "a"));
        queues.poll(lane);
        queues.poll(lane);

        assertThat(queues.add(event(1, "a"))).isNotNull();
    }

    @Test
    void add_noKey_hasALaneOfItsOwn() {
        assertThat(queues.add(event(0, null))).isNotNull();
        assertThat(queues.add(event(1, null))).isNotNull();
    }

    @Test
    void isEmpty_onlyWhenAllAreFinished() {
        Lane lane = queues.add(event(0, "a"));
        queues.poll(lane);
        assertThat(queues.isEmpty()).isFalse();

        queues.finish();

        assertThat(queues.isEmpty()).isTrue();
        queues.awaitAtMost(0);
    }
}
