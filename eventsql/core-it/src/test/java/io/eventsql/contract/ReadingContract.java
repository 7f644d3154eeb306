package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.OffsetOutOfRangeException;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Reading ranges of events without a consumer. */
abstract class ReadingContract extends Contract {
    ReadingContract(ContractCluster databases) {
        super(databases);
    }

    @Test
    void read_acrossSegmentsWithAnyPageSize_returnsAllEvents() {
        EventSql small = cluster.open(settings -> settings.maxBatchEvents(50));
        String stream =
                newStream(StreamSpec.of(newName()).withPartitions(2).withSegmentSize(StreamSpec.SEGMENT_SIZE_MIN));
        EventPosition first = small.publisher().publish(stream, Event.ofText("k", "0"));
        for (int from = 1; from < 350; from += 50) {
            List<Event> events = IntStream.range(from, Math.min(from + 50, 350))
                    .mapToObj(i -> Event.ofText("k", "" + i))
                    .toList();
            small.publisher().publishAll(stream, events);
        }
        for (int pageEvents : new int[] {1, 7, 99, 100, 101, 200, 1_000}) {
            List<String> read = new ArrayList<>();
            List<StoredEvent> page;
            do {
                page = small.read(new EventPosition(stream, first.shard(), first.partition(), read.size()), pageEvents);
                assertThat(page).hasSize(Math.min(pageEvents, 350 - read.size()));
                page.forEach(event -> read.add(event.text()));
            } while (!page.isEmpty());
            assertThat(read).as("pages of %d", pageEvents).containsExactlyElementsOf(texts(0, 350));
        }
    }

    @Test
    void read_atTheHead_isEmptyAndBeyondItOutOfRange() {
        String stream = newStream();
        EventPosition position = publisher.publish(stream, Event.ofText("x"));
        EventPosition head = new EventPosition(stream, position.shard(), position.partition(), 1);
        assertThat(eventSql.read(head, 10)).isEmpty();
        for (long beyond : new long[] {2, 100, 1_000_000, 5_000_000_000L, Long.MAX_VALUE}) {
            EventPosition asked = new EventPosition(stream, position.shard(), position.partition(), beyond);
            assertThatExceptionOfType(OffsetOutOfRangeException.class)
                    .isThrownBy(() -> eventSql.read(asked, 10))
                    .satisfies(e -> {
                        assertThat(e.requested()).isEqualTo(asked);
                        assertThat(e.head()).isEqualTo(1);
                        assertThat(e.logStart()).isZero();
                    });
        }
        publisher.publishAll(stream, List.of());
        assertThat(eventSql.read(new EventPosition(stream, 0, PARTITIONS - 1, 0), 10))
                .hasSizeLessThanOrEqualTo(1);
    }

    @Test
    void read_headAtSegmentEnd_isEmpty() {
        EventSql small = cluster.open(settings -> settings.maxBatchEvents(50));
        String stream = newStream(StreamSpec.of(newName()).withPartitions(1).withSegmentSize(100));
        List<Event> fifty =
                IntStream.range(0, 50).mapToObj(i -> Event.ofText("k", "" + i)).toList();
        small.publisher().publishAll(stream, fifty);
        EventPosition last = small.publisher().publishAll(stream, fifty).getLast();
        assertThat(last.offset()).isEqualTo(99);
        assertThat(small.read(new EventPosition(stream, last.shard(), 0, 100), 10))
                .isEmpty();
        assertThat(small.read(new EventPosition(stream, last.shard(), 0, 99), 10))
                .hasSize(1);
    }

    @Test
    void read_manyBytes_returnsPageOfLimitedSize() {
        String stream = newStream();
        List<EventPosition> positions = new ArrayList<>();
        for (int i = 0; i < 7; i++) {
            positions.add(publisher.publish(stream, Event.of("k", new byte[1 << 20])));
        }
        List<StoredEvent> page = eventSql.read(positions.getFirst(), 100);
        long limit = ConsumerSpec.DEFAULT_PAGE_BYTES / (1 << 20);
        assertThat(page).hasSize((int) limit);
        assertThat(eventSql.read(positions.get(page.size()), 100)).hasSize(7 - page.size());
    }
}
