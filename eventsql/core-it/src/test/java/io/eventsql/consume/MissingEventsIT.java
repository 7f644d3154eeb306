package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.EventsMissingException;
import io.eventsql.MissingEventPolicy;
import io.eventsql.PartitionState;
import io.eventsql.PartitionState.Status;
import io.eventsql.StartPosition;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.fixture.ConsumerFixture;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.HandlerMode;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Goal: rows that were deleted from the log are an explicit condition: nothing is repeated or skipped silently, offsets
 * stay correct. Method: rows are deleted with SQL, at random and at the ends of pages and segments; what each kind of
 * handler receives is compared with the rows that are left.
 */
class MissingEventsIT extends ConsumerFixture {

    private void delete(String stream, String condition) throws SQLException {
        cluster.execute("DELETE FROM eventsql.events_" + stream + " WHERE " + condition);
    }

    private void publishMany(String stream, int events) {
        for (int from = 0; from < events; from += 500) {
            publish(stream, from, Math.min(events, from + 500), 10);
        }
    }

    private PartitionState awaitStopped(String stream) {
        awaitStatus(stream, Status.STOPPED);
        return state(stream).getFirst();
    }

    @ParameterizedTest
    @CsvSource({"0, 3", "5, 6", "40, 100", "0, 100", "995, 1005"})
    void stop_rowsAreDeleted_stopsBeforeThemAndNamesTheRange(int first, int next) throws SQLException {
        String stream = newStream(1);
        int events = next > 100 ? 1_010 : 100;
        publishMany(stream, events);
        delete(stream, "event_offset >= " + first + " AND event_offset < " + next);
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream), handled::add)) {
            PartitionState stopped = awaitStopped(stream);
            assertThat(stopped.error()).contains("missing events [" + first + ", " + next + ")");
            assertThat(stopped.nextOffset()).isEqualTo(first);
            assertThat(handled.texts()).containsExactlyElementsOf(texts(0, first));

            eventSql.consumer(stream, "c").resume(); // nothing has changed
            await().atMost(Duration.ofSeconds(120))
                    .until(() -> state(stream).getFirst().epoch() > stopped.epoch());
            assertThat(awaitStopped(stream).nextOffset()).isEqualTo(first);

            eventSql.consumer(stream, "c").seek(new EventPosition(stream, 0, 0, next));
            eventSql.consumer(stream, "c").resume();
            awaitLag(stream, 0);
            await().untilAsserted(() -> assertThat(handled.size()).isEqualTo(events - (next - first)));
        }
        assertThat(handled.texts())
                .containsExactlyElementsOf(IntStream.range(0, events)
                        .filter(i -> i < first || i >= next)
                        .mapToObj(Integer::toString)
                        .toList());
    }

    @Test
    void stop_keysAreHandledInParallel_everythingBeforeIsHandled() throws Exception {
        String stream = newStream(1);
        publishMany(stream, 100);
        delete(stream, "event_offset IN (50, 51)");
        CountDownLatch release = new CountDownLatch(1);
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream).withKeyConcurrency(5), event -> {
            if (event.offset() == 3) {
                release.await();
            }
            handled.add(event);
        })) {
            handled.awaitSize(45); // all before the gap except those of the key that waits
            assertThat(state(stream).getFirst().status()).isEqualTo(Status.RUNNING);
            release.countDown();
            PartitionState stopped = awaitStopped(stream);
            assertThat(stopped.error()).contains("missing events [50, 52)");
            assertThat(stopped.nextOffset()).isEqualTo(50);
        }
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(0, 50));
    }

    @Test
    void stop_segmentIsDropped_isNotSilent() throws SQLException {
        String stream = newStream(1);
        publishMany(stream, 2_500);
        String segment = "eventsql.events_" + stream + "__p0_s1";
        cluster.execute(
                "ALTER TABLE eventsql.events_" + stream + "__p0 DETACH PARTITION " + segment, "DROP TABLE " + segment);
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream), handled::add)) {
            PartitionState stopped = awaitStopped(stream);
            assertThat(stopped.error()).contains("missing events [1000, 2000)");
            assertThat(stopped.nextOffset()).isEqualTo(1_000);
            assertThat(stopped.lag()).isEqualTo(1_500);
        }
        assertThat(handled.texts()).containsExactlyElementsOf(texts(0, 1_000));
    }

    @Test
    void stop_otherPartitions_continue() throws SQLException {
        String stream = newStream();
        publishMany(stream, 1_000);
        delete(stream, "partition = 0 AND event_offset = 7");
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream), handled::add)) {
            awaitStatus(stream, Status.STOPPED);
            long stored = cluster.sum("SELECT count(*) FROM eventsql.events_" + stream + " WHERE partition <> 0");
            handled.awaitSize((int) stored + 7);
            assertThat(state(stream).stream().filter(p -> p.status() == Status.STOPPED))
                    .singleElement()
                    .satisfies(p -> assertThat(p.nextOffset()).isEqualTo(7));
        }
    }

    private static final class MissingRanges implements ConsumerListener {
        final Queue<String> ranges = new ConcurrentLinkedQueue<>();

        @Override
        public void eventsMissing(ConsumerPartition partition, long firstOffset, long nextOffset) {
            for (long offset = firstOffset; offset < nextOffset; offset++) {
                ranges.add(Long.toString(offset));
            }
        }
    }

    private static Subscription subscribe(EventSql eventSql, ConsumerSpec spec, HandlerMode mode, Handled handled) {
        return switch (mode) {
            case BATCH -> eventSql.subscribeBatch(spec, handled::addAll);
            case TRANSACTIONAL -> eventSql.subscribeTransactional(spec, (event, connection) -> handled.add(event));
            case TRANSACTIONAL_BATCH ->
                eventSql.subscribeTransactionalBatch(spec, (events, connection) -> handled.addAll(events));
            default -> eventSql.subscribe(spec, handled::add);
        };
    }

    @ParameterizedTest
    @EnumSource(
            value = HandlerMode.class,
            names = {"SINGLE", "BATCH", "KEYS", "TRANSACTIONAL", "TRANSACTIONAL_BATCH"})
    void skip_rowsDeletedAtRandom_othersAreHandledOnceAndTheRestIsReportedOnce(HandlerMode mode) throws SQLException {
        long seed = new Random().nextLong();
        System.out.println("seed " + seed);
        Random random = new Random(seed);
        String stream = newStream(1);
        int events = 1_600;
        publishMany(stream, events);
        BitSet deleted = new BitSet(events);
        IntStream.range(0, 15).forEach(i -> {
            int first = random.nextInt(events);
            deleted.set(first, Math.min(events, first + 1 + random.nextInt(60)));
        });
        deleted.set(0, random.nextInt(3)); // perhaps the first, the last, and those around a segment's end
        deleted.set(events - random.nextInt(3), events);
        deleted.set(1_000 - random.nextInt(10), 1_000 + random.nextInt(10));
        String offsets =
                String.join(",", deleted.stream().mapToObj(Integer::toString).toList());
        delete(stream, "event_offset IN (" + offsets + ")");

        Handled handled = new Handled();
        MissingRanges missing = new MissingRanges();
        ConsumerSpec spec = consumer(stream)
                .withMissingEventPolicy(MissingEventPolicy.SKIP)
                .withPageEvents(1 + random.nextInt(200))
                .withKeyConcurrency(mode == HandlerMode.KEYS ? 8 : 1);
        int left = events - deleted.cardinality();
        EventSql process =
                EventSql.builder(cluster.dataSources()).listener(missing).build();
        try (process;
                Subscription ignored = subscribe(process, spec, mode, handled)) {
            awaitLag(stream, 0);
        }
        List<String> expected = IntStream.range(0, events)
                .filter(i -> !deleted.get(i))
                .mapToObj(Integer::toString)
                .toList();
        if (mode == HandlerMode.KEYS) {
            assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(expected);
            assertOrderOfKeys(handled.events());
        } else {
            assertThat(handled.texts()).containsExactlyElementsOf(expected);
        }
        assertThat(missing.ranges)
                .containsExactlyInAnyOrderElementsOf(
                        deleted.stream().mapToObj(Integer::toString).toList());
        assertThat(state(stream).getFirst().nextOffset()).isEqualTo(events);
        assertThat(cluster.sum("""
                        SELECT consumed_events FROM eventsql.consumer_offset o
                        JOIN eventsql.consumer c USING (consumer_id) JOIN eventsql.stream s USING (stream_id)
                        WHERE s.name = '%s' ORDER BY commit_number DESC LIMIT 1""".formatted(stream))).isEqualTo(left);
    }

    @Test
    void skip_partitionIsTakenAgain_isNotReportedAgain() throws SQLException {
        String stream = newStream(1);
        publishMany(stream, 20);
        delete(stream, "event_offset >= 10");
        MissingRanges missing = new MissingRanges();
        ConsumerSpec spec = consumer(stream).withMissingEventPolicy(MissingEventPolicy.SKIP);
        for (int round = 0; round < 2; round++) {
            Handled handled = new Handled();
            EventSql process =
                    EventSql.builder(cluster.dataSources()).listener(missing).build();
            try (process;
                    Subscription ignored = process.subscribe(spec, handled::add)) {
                awaitLag(stream, 0);
                publish(stream, 20 + round, 21 + round, 1); // the log continues behind the gap
                handled.awaitSize(1);
                awaitLag(stream, 0);
            }
            assertThat(handled.texts()).contains(Integer.toString(20 + round));
        }
        assertThat(missing.ranges).containsExactlyElementsOf(texts(10, 20));
    }

    @Test
    void clear_offsetIsStored_isOutOfRangeAndNotMissing() {
        String stream = newStream(1);
        publishMany(stream, 100);
        eventSql.subscribe(consumer(stream), event -> {}).close();
        eventSql.consumer(stream, "c").seek(new EventPosition(stream, 0, 0, 50)); // cleared next
        var preview = eventSql.previewClear(stream);
        eventSql.clear(stream, preview.confirmation());
        publish(stream, 100, 110, 1);
        try (Subscription ignored = eventSql.subscribe(consumer(stream), event -> {})) {
            assertThat(awaitStopped(stream).error())
                    .contains("no longer exists")
                    .doesNotContain("missing");
        }
    }

    @Test
    void read_rowsAreDeleted_endsBeforeThemAndFailsAtThem() throws SQLException {
        String stream = newStream(1);
        publishMany(stream, 1_200);
        delete(stream, "event_offset IN (5, 6) OR event_offset >= 998 AND event_offset < 1003");
        assertThat(eventSql.read(new EventPosition(stream, 0, 0, 0), 100)).hasSize(5);
        for (long offset : new long[] {5, 6}) {
            EventPosition missing = new EventPosition(stream, 0, 0, offset);
            assertThatExceptionOfType(EventsMissingException.class)
                    .isThrownBy(() -> eventSql.read(missing, 100))
                    .satisfies(e -> {
                        assertThat(e.first()).isEqualTo(missing);
                        assertThat(e.nextOffset()).isEqualTo(7);
                    })
                    .withMessageContaining("[" + offset + ", 7)");
        }
        List<Long> read = new ArrayList<>();
        long next = 7;
        while (next < 1_200) { // as a caller that skips what is missing
            try {
                List<StoredEvent> page = eventSql.read(new EventPosition(stream, 0, 0, next), 300);
                page.forEach(event -> read.add(event.offset()));
                next += page.size();
            } catch (EventsMissingException e) {
                next = e.nextOffset();
            }
        }
        assertThat(read)
                .containsExactlyElementsOf(IntStream.range(7, 1_200)
                        .filter(i -> i < 998 || i >= 1_003)
                        .mapToObj(i -> (long) i)
                        .toList());
    }

    @Test
    void seek_toATimeWhoseEventIsMissing_findsTheNextOne() throws Exception {
        String stream = newStream(1);
        publishMany(stream, 10);
        StoredEvent last = eventSql.read(new EventPosition(stream, 0, 0, 9), 1).getFirst();
        await().until(() -> {
            long offset = eventSql.publisher()
                    .publish(stream, Event.ofText("key-0", "10"))
                    .offset();
            return eventSql.read(new EventPosition(stream, 0, 0, offset), 1)
                    .getFirst()
                    .publishedAt()
                    .isAfter(last.publishedAt());
        });
        StoredEvent first =
                eventSql.read(new EventPosition(stream, 0, 0, 10), 1).getFirst();
        publishMany(stream, 1_500);
        delete(stream, "event_offset IN (4, 5, 6, 10, 11) OR event_offset >= 700 AND event_offset < 1100");
        eventSql.subscribe(consumer(stream).withStartPosition(StartPosition.LATEST), event -> {})
                .close();

        eventSql.consumer(stream, "c").seek(StartPosition.at(first.publishedAt()));

        assertThat(state(stream).getFirst().nextOffset()).isEqualTo(12);
    }
}
