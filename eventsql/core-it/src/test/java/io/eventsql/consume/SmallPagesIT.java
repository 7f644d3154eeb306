package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.PartitionState;
import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.fixture.FunctionCalls;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.TestCluster;
import java.sql.SQLException;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Small pages: a fast handler that is behind gets many of them by one fetch, each in a call of its own, and nothing that was
 * fetched in advance is handled after a seek or a pause.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class SmallPagesIT {
    private static final int PAGE_EVENTS = 10;
    private static final int EVENTS = 15_000;
    /** Where the handler waits for the test: by then many pages are fetched at a time. */
    private static final long STOP_OFFSET = 5_004;

    private static final String FETCHES = "^(fetch|events_.*__fetch)";

    private FunctionCalls calls;

    @BeforeAll
    void createDatabase() throws SQLException {
        calls = FunctionCalls.inNewDatabase();
    }

    private static String fill(EventSql eventSql, String test, Storage storage) {
        String stream = test + "_" + storage.name().toLowerCase(Locale.ROOT);
        eventSql.createStream(
                StreamSpec.of(stream).withPartitions(1).withSegmentSize(3_000).withStorage(storage));
        for (int from = 0; from < EVENTS; from += 5_000) {
            eventSql.publisher()
                    .publishAll(
                            stream,
                            IntStream.range(from, from + 5_000)
                                    .mapToObj(i -> Event.ofText("key", Integer.toString(i)))
                                    .toList());
        }
        return stream;
    }

    private static ConsumerSpec consumer(String stream) {
        return ConsumerSpec.of(stream, "c").withPageEvents(PAGE_EVENTS);
    }

    @ParameterizedTest
    @EnumSource(Storage.class)
    void consumerIsBehind_handlerIsFast_oneFetchBringsManyPages(Storage storage) throws SQLException {
        Handled handled = new Handled();
        List<Integer> sizes = new CopyOnWriteArrayList<>();
        long before;
        try (HikariDataSource pool = TestCluster.pool(calls.database());
                EventSql eventSql = EventSql.builder(pool).build()) {
            String stream = fill(eventSql, "behind", storage);
            before = calls.count(FETCHES);
            try (Subscription ignored = eventSql.subscribeBatch(consumer(stream), page -> {
                sizes.add(page.size());
                handled.addAll(page);
            })) {
                handled.awaitSize(EVENTS).assertOnceAndInOrder();
            }
        }
        assertThat(sizes).allMatch(size -> size <= PAGE_EVENTS);
        // Connections report their counts when they end.
        await().until(() -> calls.count(FETCHES) > before);
        assertThat(calls.count(FETCHES) - before).isLessThan(EVENTS / PAGE_EVENTS / 2);
    }

    /** The handler is stopped in the middle of what was fetched, and the new offset is in the middle of a block. */
    @Test
    void seek_pagesWait_continuesAtTheNewOffset() throws Exception {
        Handled handled = new Handled();
        CountDownLatch reached = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        CountDownLatch lost = new CountDownLatch(1);
        long target = 10_003;
        ConsumerListener listener = new ConsumerListener() {
            @Override
            public void partitionRevoked(ConsumerPartition partition, Reason reason) {
                lost.countDown();
            }
        };
        try (HikariDataSource pool = TestCluster.pool(calls.database());
                EventSql eventSql = EventSql.builder(pool).listener(listener).build()) {
            String stream = fill(eventSql, "seek", Storage.BLOCKS);
            try (Subscription ignored = eventSql.subscribe(consumer(stream), event -> {
                if (event.offset() == STOP_OFFSET && reached.getCount() > 0) {
                    reached.countDown();
                    release.await();
                }
                handled.add(event);
            })) {
                reached.await();
                eventSql.consumer(stream, "c").seek(new EventPosition(stream, 0, 0, target));
                lost.await();
                release.countDown();
                handled.awaitSize((int) (STOP_OFFSET + 1 + EVENTS - target));
            }
        }
        List<Long> offsets =
                handled.positions().stream().map(EventPosition::offset).toList();
        assertThat(offsets)
                .isEqualTo(LongStream.concat(LongStream.rangeClosed(0, STOP_OFFSET), LongStream.range(target, EVENTS))
                        .boxed()
                        .toList());
    }

    @Test
    void pause_pagesWait_noneIsHandledUntilItIsResumed() throws Exception {
        Handled handled = new Handled();
        CountDownLatch reached = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        try (HikariDataSource pool = TestCluster.pool(calls.database());
                EventSql eventSql = EventSql.builder(pool).build()) {
            String stream = fill(eventSql, "pause", Storage.ROWS);
            try (Subscription ignored = eventSql.subscribe(consumer(stream), event -> {
                if (event.offset() == STOP_OFFSET && reached.getCount() > 0) {
                    reached.countDown();
                    release.await();
                }
                handled.add(event);
            })) {
                reached.await();
                eventSql.consumer(stream, "c").pause();
                release.countDown();
                await().until(() ->
                        eventSql.consumer(stream, "c").state().getFirst().status() == PartitionState.Status.PAUSED);
                await().until(() ->
                        eventSql.consumer(stream, "c").state().getFirst().member() == null);
                int paused = handled.size();
                assertThat(paused).isBetween((int) STOP_OFFSET, EVENTS - 1);
                eventSql.consumer(stream, "c").resume();
                handled.awaitSize(EVENTS).assertOnceAndInOrder();
            }
        }
    }
}
