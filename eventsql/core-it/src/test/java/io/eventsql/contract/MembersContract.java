package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerPosition;
import io.eventsql.ConsumerSpec;
import io.eventsql.StartPosition;
import io.eventsql.Subscription;
import io.eventsql.UnknownStreamException;
import io.eventsql.fixture.Handled;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** A consumer's start position, its positions, and how its members share partitions. */
abstract class MembersContract extends Contract {
    MembersContract(ContractCluster databases) {
        super(databases);
    }

    @Test
    void subscribe_secondMember_takesHalfOfEachShardsPartitions() {
        int partitions = 4;
        String stream = newStream(partitions);
        publishTexts(stream, 0, 100);
        Handled handled = new Handled();
        try (Subscription first = eventSql.subscribe(consumer(stream, "c"), handled::add);
                Subscription second = cluster.open().subscribe(consumer(stream, "c"), handled::add)) {
            await().untilAsserted(() -> assertThat(eventSql.consumer(stream, "c").state().stream()
                            .collect(Collectors.groupingBy(
                                    state -> state.shard() + " " + state.member(), Collectors.counting()))
                            .values())
                    .hasSize(2 * shards)
                    .allMatch(held -> held == partitions / 2));
            publishTexts(stream, 100, 200);
            handled.awaitSize(200);
            await().until(() -> committed(stream, "c") == 200);
            assertThat(first.isRunning()).isTrue();
            assertThat(second.isRunning()).isTrue();
        }
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(0, 200));
    }

    @Test
    void subscribe_startLatest_skipsStoredEvents() {
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
        // The consumer exists now, so the start position has no effect.
        publishTexts(stream, 150, 200);
        try (Subscription ignored = eventSql.subscribe(spec.withStartPosition(StartPosition.EARLIEST), handled::add)) {
            handled.awaitSize(100);
        }
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(100, 200));
    }

    @Test
    void positions_duringAndAfterHandling_showNextOffsetAndLag() {
        String stream = newStream();
        assertThat(eventSql.positions(stream, "never_started")).isEmpty();
        publishTexts(stream, 0, 100);
        CountDownLatch release = new CountDownLatch(1);
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(consumer(stream, "c"), event -> {
            release.await();
            handled.add(event);
        })) {
            await().until(() -> eventSql.positions(stream, "c").stream().allMatch(p -> p.epoch() == 1));
            List<ConsumerPosition> positions = eventSql.positions(stream, "c");
            assertThat(positions).hasSize(shards * PARTITIONS).allMatch(p -> p.nextOffset() == 0);
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
