package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Subscription;
import io.eventsql.fixture.ConsumerFixture;
import io.eventsql.fixture.Handled;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Parallel handling of the keys of one partition. */
class KeyConcurrencyIT extends ConsumerFixture {
    @Test
    void handle_keysOfOnePartition_runInParallelUpToTheLimit() throws Exception {
        String stream = newStream(1);
        publish(stream, 0, 100, 100);
        Semaphore begun = new Semaphore(0);
        CountDownLatch release = new CountDownLatch(1);
        AtomicInteger running = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream).withKeyConcurrency(50), event -> {
            most.accumulateAndGet(running.incrementAndGet(), Math::max);
            begun.release();
            release.await();
            running.decrementAndGet();
            handled.add(event);
        })) {
            begun.acquire(50); // hangs unless 50 handlers run at the same time
            assertThat(state(stream).getFirst().nextOffset()).isZero();
            release.countDown();
            awaitLag(stream, 0);
        }
        assertThat(most.get()).isEqualTo(50);
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(0, 100));
    }

    @Test
    void handle_oneKeyIsSlow_othersContinueAndOffsetWaitsForIt() throws Exception {
        String stream = newStream(1);
        publish(stream, 0, 500, 50);
        CountDownLatch release = new CountDownLatch(1);
        Handled handled = new Handled();
        Subscription first = eventSql.subscribe(consumer(stream).withKeyConcurrency(10), event -> {
            if (event.offset() == 7) {
                release.await();
            }
            handled.add(event);
        });
        handled.awaitSize(490); // all except the ten of the slow key
        assertThat(state(stream).getFirst().nextOffset()).isLessThanOrEqualTo(7);
        publish(stream, 500, 600, 50);
        handled.awaitSize(490 + 98);
        release.countDown();
        awaitLag(stream, 0);
        first.close();
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(0, 600));
        assertOrderOfKeys(handled.events());
    }

    /** What is handled above a gap can only be committed once the gap is handled, too: closing does that first. */
    @Test
    void close_eventsHandledOutOfOrder_repeatsAndLosesNothing() throws Exception {
        long seed = new Random().nextLong();
        System.out.println("seed " + seed);
        Random random = new Random(seed);
        String stream = newStream(1);
        int events = 2_000;
        publish(stream, 0, events, 40);
        Handled handled = new Handled();
        for (int round = 0; round < 5; round++) {
            int until = handled.size() + random.nextInt(events / 5);
            EventSql process = cluster.open();
            Subscription member = process.subscribe(
                    consumer(stream).withKeyConcurrency(1 + random.nextInt(30)).withPageEvents(1 + random.nextInt(300)),
                    handled::add);
            handled.awaitSize(Math.min(until, events));
            member.close();
            process.close();
        }
        try (Subscription ignored = eventSql.subscribe(consumer(stream).withKeyConcurrency(20), handled::add)) {
            awaitLag(stream, 0);
        }
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(0, events));
        assertOrderOfKeys(handled.events());
    }

    @Test
    void handle_eventsWithoutKey_runInParallel() throws Exception {
        String stream = newStream(1);
        eventSql.publisher()
                .publishAll(
                        stream,
                        IntStream.range(0, 20)
                                .mapToObj(i -> Event.ofText(Integer.toString(i)))
                                .toList());
        Semaphore begun = new Semaphore(0);
        CountDownLatch release = new CountDownLatch(1);
        try (Subscription ignored = eventSql.subscribe(consumer(stream).withKeyConcurrency(20), event -> {
            begun.release();
            release.await();
        })) {
            begun.acquire(20);
            release.countDown();
            awaitLag(stream, 0);
        }
    }
}
