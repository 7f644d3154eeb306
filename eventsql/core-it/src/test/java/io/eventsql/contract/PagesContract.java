package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.Handled;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Handlers receive events as they were published, in pages of bounded size that begin at any offset. */
abstract class PagesContract extends Contract {
    PagesContract(ContractCluster databases) {
        super(databases);
    }

    @Test
    void subscribe_event_equalsThePublishedOne() {
        String stream = newStream();
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream, "c"), handled::add)) {
            Event event = Event.ofText("k\u00e4se", "v\u00e4lue").withHeader("n\u00e4me", "\ud83d\ude00");
            EventPosition position = publisher.publish(stream, event);
            StoredEvent stored = handled.awaitSize(1).events().getFirst();
            assertThat(stored.position()).isEqualTo(position);
            assertThat(stored.stream()).isEqualTo(stream);
            assertThat(new Event(stored.key(), stored.value(), stored.headers()))
                    .isEqualTo(event);
        }
    }

    @Test
    void subscribeBatch_page_hasLimitedEventsOfOnePartition() {
        String stream = newStream();
        publishTexts(stream, 0, 100);
        Handled handled = new Handled();
        List<List<StoredEvent>> pages = new ArrayList<>();
        ConsumerSpec spec = consumer(stream, "c").withPageEvents(7).withConcurrency(1);
        try (Subscription ignored = eventSql.subscribeBatch(spec, page -> {
            pages.add(List.copyOf(page));
            handled.addAll(page);
        })) {
            handled.awaitSize(100).assertOnceAndInOrder();
        }
        assertThat(pages).allSatisfy(page -> {
            assertThat(page).hasSizeBetween(1, 7);
            assertThat(page.stream().map(e -> e.shard() + "/" + e.partition()).distinct())
                    .hasSize(1);
        });
        assertThat(pages).anyMatch(page -> page.size() == 7);
    }

    @ParameterizedTest
    @ValueSource(ints = {100, 3_000})
    void subscribeBatch_page_hasLimitedBytes(int valueBytes) {
        String stream = newStream(1);
        int pageBytes = 10_000;
        int total = 5 * pageBytes / valueBytes;
        publisher.publishAll(
                stream,
                Stream.generate(() -> Event.of("k", new byte[valueBytes]))
                        .limit(total)
                        .toList());
        List<Integer> sizes = new ArrayList<>();
        Handled handled = new Handled();
        try (Subscription ignored =
                eventSql.subscribeBatch(consumer(stream, "c").withPageBytes(pageBytes), page -> {
                    sizes.add(page.size());
                    handled.addAll(page);
                })) {
            handled.awaitSize(total).assertOnceAndInOrder();
        }
        // A page ends with the event that reaches the limit.
        int most = Math.ceilDiv(pageBytes, valueBytes);
        assertThat(sizes).allMatch(size -> size <= most).contains(most);
    }

    @Test
    void subscribeBatch_eventLargerThanPage_isHandledAlone() {
        String stream = newStream(1);
        for (int i = 0; i < 3; i++) {
            publisher.publish(stream, Event.of("k", new byte[5_000]));
        }
        List<Integer> sizes = new ArrayList<>();
        Handled handled = new Handled();
        try (Subscription ignored =
                eventSql.subscribeBatch(consumer(stream, "c").withPageBytes(1_024), page -> {
                    sizes.add(page.size());
                    handled.addAll(page);
                })) {
            handled.awaitSize(3).assertOnceAndInOrder();
        }
        assertThat(sizes).containsOnly(1);
    }

    @Test
    void subscribe_acrossSegments_handlesAllEvents() {
        EventSql small = cluster.open(settings -> settings.maxBatchEvents(50));
        String stream = newStream(StreamSpec.of(newName()).withPartitions(2).withSegmentSize(100));
        Handled handled = new Handled();
        try (Subscription ignored = small.subscribe(consumer(stream, "c").withPageEvents(30), handled::add)) {
            for (int i = 0; i < 10; i++) {
                List<Event> events = IntStream.range(i * 50, i * 50 + 50)
                        .mapToObj(n -> Event.ofText("key-" + n % 20, "" + n))
                        .toList();
                small.publisher().publishAll(stream, events);
            }
            handled.awaitSize(500).assertOnceAndInOrder();
        }
        assertOrderOfKeys(handled);
    }

    /** Each subscription ends within what was published by one call, and within a page. */
    @Test
    void subscribe_endsWithinACall_nextSubscriptionResumesThere() {
        String stream = newStream(1);
        publishTexts(stream, 0, 100);
        Handled handled = new Handled();
        ConsumerSpec spec = consumer(stream, "c").withPageEvents(7).withCircuitBreaker(0);
        for (int limit : new int[] {10, 45, 100}) {
            try (Subscription ignored = eventSql.subscribe(spec, event -> {
                if (handled.size() >= limit) {
                    throw new IllegalStateException("on purpose");
                }
                handled.add(event);
            })) {
                handled.awaitSize(limit);
            }
        }
        handled.assertOnceAndInOrder();
        assertThat(handled.texts()).isEqualTo(texts(0, 100));
    }
}
