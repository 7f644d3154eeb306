package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerPosition;
import io.eventsql.ConsumerSpec;
import io.eventsql.EventSql;
import io.eventsql.StartPosition;
import io.eventsql.Subscription;
import io.eventsql.UnknownStreamException;
import io.eventsql.fixture.Handled;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

/** Where a consumer begins, how far it is, and who of its members handles events. */
abstract class MembersContract extends Contract {
    MembersContract(int shards) {
        super(shards);
    }

    @Test
    void subscribe_secondMember_takesOverAndTheFirstCommitsNothingMore() {
        String stream = newStream();
        publishTexts(stream, 0, 100);
        EventSql other = cluster.open();
        CountDownLatch release = new CountDownLatch(1);
        CountDownLatch begun = new CountDownLatch(1);
        Handled ofFirst = new Handled();
        Handled ofSecond = new Handled();
        Subscription first = eventSql.subscribe(consumer(stream, "c"), event -> {
            begun.countDown();
            release.await();
            ofFirst.add(event);
        });
        try (Subscription second = startedAfter(begun, () -> other.subscribe(consumer(stream, "c"), ofSecond::add))) {
            ofSecond.awaitSize(100).assertOnceAndInOrder();
            await().until(() -> committed(stream, "c") == 100);
            List<ConsumerPosition> before = eventSql.positions(stream, "c");
            assertThat(before).allMatch(p -> p.epoch() == 2);

            release.countDown();
            await().until(() -> !first.isRunning());
            assertThat(eventSql.positions(stream, "c")).isEqualTo(before);
            assertThat(second.isRunning()).isTrue();
            int handledByFirst = ofFirst.size();
            publishTexts(stream, 100, 200);
            ofSecond.awaitSize(200).assertOnceAndInOrder();
            assertThat(ofFirst.size()).as("nothing goes to the first any more").isEqualTo(handledByFirst);
        } finally {
            release.countDown();
            first.close();
        }
        assertThat(committed(stream, "c")).isEqualTo(200);
    }

    private static Subscription startedAfter(CountDownLatch latch, Supplier<Subscription> start) {
        try {
            assertThat(latch.await(30, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return start.get();
    }

    @Test
    void subscribe_startLatest_beginsBehindWhatIsStored() {
        String stream = newStream();
        publishTexts(stream, 0, 100);
        Handled handled = new Handled();
        ConsumerSpec spec = consumer(stream, "c").withStartPosition(StartPosition.LATEST);
        try (Subscription ignored = eventSql.subscribe(spec, handled::add)) {
            assertThat(eventSql.positions(stream, "c")).allMatch(p -> p.nextOffset() == p.head());
            publishTexts(stream, 100, 150);
            handled.awaitSize(50);
        }
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(100, 150));
        // It is known now: the start position no longer matters.
        publishTexts(stream, 150, 200);
        try (Subscription ignored = eventSql.subscribe(spec.withStartPosition(StartPosition.EARLIEST), handled::add)) {
            handled.awaitSize(100);
        }
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(100, 200));
    }

    @Test
    void positions_sayHowFarTheConsumerIs() {
        String stream = newStream();
        assertThat(eventSql.positions(stream, "never_started")).isEmpty();
        publishTexts(stream, 0, 100);
        CountDownLatch release = new CountDownLatch(1);
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream, "c"), event -> {
            release.await();
            handled.add(event);
        })) {
            List<ConsumerPosition> positions = eventSql.positions(stream, "c");
            assertThat(positions).hasSize(shards * PARTITIONS).allMatch(p -> p.nextOffset() == 0 && p.epoch() == 1);
            assertThat(positions)
                    .isSortedAccordingTo(Comparator.comparingInt(ConsumerPosition::shard)
                            .thenComparingInt(ConsumerPosition::partition));
            assertThat(positions.stream().mapToLong(ConsumerPosition::lag).sum())
                    .isEqualTo(100);
            release.countDown();
            handled.awaitSize(100);
            await().untilAsserted(
                            () -> assertThat(eventSql.positions(stream, "c")).allMatch(p -> p.lag() == 0));
        }
        assertThat(cluster.open().positions(stream, "c").stream()
                        .mapToLong(ConsumerPosition::nextOffset)
                        .sum())
                .isEqualTo(100);
        assertThatExceptionOfType(UnknownStreamException.class)
                .isThrownBy(() -> eventSql.positions("no_such_stream", "c"));
    }
}
