package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.StartPosition;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Several consumers of one stream in a process, which share pages where they are at the same offset. */
@Timeout(120)
class SharedPagesIT {
    private static final int EVENTS = 3_000;

    private static List<Event> events(int from, int to) {
        return IntStream.range(from, to)
                .mapToObj(i -> Event.ofText("k" + i % 7, "value " + i))
                .toList();
    }

    /**
     * Each consumer sees all events once and in order, with the values that were published: though others change the values
     * that they receive, are slower or far behind, keep fewer bytes, or have other pages.
     */
    @Test
    void consumersOfAStream_differInSpeedAndChangeValues_eachHandlesAllEventsAsPublished() throws Exception {
        Random random = Seeds.random("SharedPagesIT");
        try (TestCluster cluster = TestCluster.ofShards(1)) {
            EventSql eventSql = cluster.open();
            eventSql.createStream(TestStreams.of("shared").withPartitions(4).withSegmentSize(500));
            List<Handled> handled = new ArrayList<>();
            List<String> wrong = new CopyOnWriteArrayList<>();
            List<Subscription> subscriptions = new ArrayList<>();
            eventSql.publisher().publishAll("shared", events(0, EVENTS / 2));
            for (int c = 0; c < 10; c++) {
                Handled ofConsumer = new Handled();
                handled.add(ofConsumer);
                long pauseNanos = random.nextInt(3) == 0 ? 50_000L * random.nextInt(5) : 0;
                ConsumerSpec spec = ConsumerSpec.of("shared", "c" + c)
                        .withStartPosition(StartPosition.EARLIEST)
                        .withPageEvents(c < 7 ? 500 : 30 + c)
                        .withMaxFetchedBytes(c == 3 ? 100_000 : 50_000_000);
                subscriptions.add(eventSql.subscribe(spec, event -> {
                    if (!event.text().startsWith("value ")) {
                        wrong.add(event.toString());
                    }
                    ofConsumer.add(copyOf(event));
                    Arrays.fill(event.value(), (byte) 'x');
                    LockSupport.parkNanos(pauseNanos);
                }));
            }
            for (int from = EVENTS / 2; from < EVENTS; ) {
                int to = Math.min(EVENTS, from + 1 + random.nextInt(40));
                eventSql.publisher().publishAll("shared", events(from, to));
                from = to;
            }
            for (Handled ofConsumer : handled) {
                ofConsumer.awaitSize(EVENTS).assertOnceAndInOrder();
                assertThat(ofConsumer.texts())
                        .containsExactlyInAnyOrderElementsOf(
                                events(0, EVENTS).stream().map(Event::text).toList());
            }
            assertThat(wrong).isEmpty();
            subscriptions.forEach(Subscription::close);
        }
    }

    private static StoredEvent copyOf(StoredEvent event) {
        return new StoredEvent(
                event.position(), event.key(), event.value().clone(), event.headers(), event.publishedAt());
    }
}
