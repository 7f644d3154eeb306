package io.eventsql.grow;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.Growth;
import io.eventsql.Growth.State;
import io.eventsql.InvalidInputException;
import io.eventsql.PartitionState;
import io.eventsql.PartitionState.Status;
import io.eventsql.RetryPolicy;
import io.eventsql.StartPosition;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.fixture.ConsumerFixture;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: a stream gets more partitions while it is used; nothing is lost or stored twice, and every consumer handles the events of
 * each key in order.
 */
@Timeout(120)
class GrowIT extends ConsumerFixture {
    private static final int KEYS = 40;

    @Test
    void grow_whileConsumed_keepsOrderOfKeysAndUsesNewPartitions() {
        String stream = newStream();
        Handled handled = new Handled();
        try (Subscription member = eventSql.subscribe(consumer(stream), handled::add)) {
            publish(stream, 0, 200, KEYS);
            Growth growth = eventSql.grow(stream, 10);
            assertThat(growth.isDone()).isTrue();
            publish(stream, 200, 400, KEYS);
            handled.awaitSize(400);
        }
        assertHandledInOrder(handled, 0, 400);
        handled.assertOnceAndInOrder();
        Map<String, List<Integer>> partitions = partitionsOfKeys(handled.events());
        assertThat(partitions)
                .as("no key moves twice")
                .allSatisfy((key, of) -> assertThat(of).hasSizeBetween(1, 2));
        assertThat(partitions.values().stream().filter(of -> of.size() == 2).map(of -> of.get(1)))
                .as("keys move to new partitions only")
                .isNotEmpty()
                .allMatch(partition -> partition >= PARTITIONS);
    }

    @Test
    void preview_changesNothing() {
        String stream = newStream();
        Growth preview = eventSql.previewGrowth(stream, 8);
        assertThat(preview.isDone()).isFalse();
        Growth.ShardGrowth shard = preview.shards().getFirst();
        assertThat(shard.state()).isEqualTo(State.PENDING);
        assertThat(shard.partitions()).isEqualTo(PARTITIONS);
        assertThat(shard.movingSlots()).as("half of them").isEqualTo(shard.slots() / 2);
        assertThat(eventSql.previewGrowth(stream, 8)).isEqualTo(preview);

        assertThat(eventSql.grow(stream, 8).shards().getFirst().partitions()).isEqualTo(8);
        assertThat(eventSql.previewGrowth(stream, 8).isDone()).isTrue();
        assertThat(eventSql.grow(stream, 8)).as("repeated").isEqualTo(eventSql.previewGrowth(stream, 8));
    }

    @Test
    void grow_otherProcessPublishes_itFindsOutByItself() {
        String stream = newStream();
        try (EventSql other = cluster.open()) {
            for (int i = 0; i < 100; i++) {
                other.publisher().publish(stream, Event.ofText("key-" + i % KEYS, Integer.toString(i)));
            }
            eventSql.grow(stream, 9);
            for (int i = 100; i < 200; i++) {
                other.publisher().publish(stream, Event.ofText("key-" + i % KEYS, Integer.toString(i)));
            }
            publish(stream, 200, 300, KEYS);
        }
        Handled handled = new Handled();
        try (Subscription member = eventSql.subscribe(consumer(stream), handled::add)) {
            handled.awaitSize(300);
        }
        assertHandledInOrder(handled, 0, 300);
    }

    @Test
    void grow_severalTimes_replayKeepsOrder() {
        String stream = newStream(1);
        publish(stream, 0, 100, KEYS);
        eventSql.grow(stream, 3);
        publish(stream, 100, 200, KEYS);
        eventSql.grow(stream, 7);
        publish(stream, 200, 300, KEYS);
        Handled handled = new Handled();
        Handled again = new Handled();
        AtomicBoolean replaying = new AtomicBoolean();
        try (Subscription member =
                eventSql.subscribe(consumer(stream), event -> (replaying.get() ? again : handled).add(event))) {
            handled.awaitSize(300);
            awaitLag(stream, 0);
            replaying.set(true);
            eventSql.consumer(stream, "c").seek(StartPosition.EARLIEST);
            again.awaitSize(300);
        }
        assertHandledInOrder(handled, 0, 300);
        assertHandledInOrder(again, 0, 300);
    }

    @Test
    void grow_slowConsumer_newPartitionsWaitForTheirGivers() {
        String stream = newStream(1);
        publish(stream, 0, 50, KEYS);
        CountDownLatch go = new CountDownLatch(1);
        Handled handled = new Handled();
        try (Subscription member = eventSql.subscribe(consumer(stream), event -> {
            go.await();
            handled.add(event);
        })) {
            eventSql.grow(stream, 2);
            publish(stream, 50, 100, KEYS);
            await().atMost(Duration.ofSeconds(60))
                    .untilAsserted(() -> assertThat(state(stream)).hasSize(2).anySatisfy(receiver -> {
                        assertThat(receiver.partition()).isEqualTo(1);
                        assertThat(receiver.error())
                                .contains("waits until partition 0 was handled up to offset 50", "running");
                        assertThat(receiver.member()).isNull();
                    }));
            go.countDown();
            handled.awaitSize(100);
        }
        assertHandledInOrder(handled, 0, 100);
        assertThat(state(stream)).allSatisfy(p -> assertThat(p.error()).isNull());
    }

    /** Keys of a partition that has had no event are in a third one before their first event is handled. */
    @Test
    void grow_twiceWithoutEventsInBetween_keysWaitForTheirFirstPartition() {
        String stream = newStream(1);
        publish(stream, 0, 50, KEYS);
        CountDownLatch go = new CountDownLatch(1);
        Handled handled = new Handled();
        try (Subscription member = eventSql.subscribe(consumer(stream), event -> {
            if (event.partition() == 0) {
                go.await();
            }
            handled.add(event);
        })) {
            eventSql.grow(stream, 2);
            eventSql.grow(stream, 4);
            publish(stream, 50, 150, KEYS);
            await().atMost(Duration.ofSeconds(60))
                    .untilAsserted(() -> assertThat(state(stream).subList(1, 4)).allSatisfy(receiver -> {
                        assertThat(receiver.error()).contains("waits until partition 0 was handled up to offset 50");
                        assertThat(receiver.member()).isNull();
                    }));
            assertThat(handled.events()).isEmpty();
            go.countDown();
            handled.awaitSize(150);
        }
        assertHandledInOrder(handled, 0, 150);
        assertThat(partitionsOfKeys(handled.events()).values())
                .as("keys that have moved on")
                .anyMatch(of -> of.contains(3));
    }

    @Test
    void grow_giverIsStopped_holdsItsReceiversAndSaysSo() {
        String stream = newStream(1);
        publish(stream, 0, 10, KEYS);
        AtomicBoolean fails = new AtomicBoolean(true);
        Handled handled = new Handled();
        ConsumerSpec spec = consumer(stream)
                .withFailurePolicy(FailurePolicy.STOP)
                .withRetry(RetryPolicy.defaults().withMaxAttempts(1));
        try (Subscription member = eventSql.subscribe(spec, event -> {
            if (fails.get() && event.text().equals("5")) {
                throw new IllegalStateException("5 fails");
            }
            handled.add(event);
        })) {
            awaitStatus(stream, Status.STOPPED);
            eventSql.grow(stream, 2);
            publish(stream, 10, 60, KEYS);
            await().atMost(Duration.ofSeconds(60))
                    .untilAsserted(() ->
                            assertThat(state(stream).get(1).error()).contains("partition 0", "stopped at offset 5"));
            fails.set(false);
            eventSql.consumer(stream, "c").resume();
            handled.awaitSize(60);
        }
        assertHandledInOrder(handled, 0, 60);
    }

    @Test
    void seek_giverToBeforeTheBarrier_receiversAreHeldAgain() {
        String stream = newStream(1);
        publish(stream, 0, 50, KEYS);
        eventSql.grow(stream, 2);
        publish(stream, 50, 100, KEYS);
        Handled handled = new Handled();
        CountDownLatch go = new CountDownLatch(1);
        AtomicBoolean held = new AtomicBoolean();
        try (Subscription member = eventSql.subscribe(consumer(stream), event -> {
            if (held.get()) {
                go.await();
            }
            handled.add(event);
        })) {
            handled.awaitSize(100);
            awaitLag(stream, 0);
            held.set(true);
            eventSql.consumer(stream, "c").seek(new EventPosition(stream, 0, 0, 0));
            PartitionState receiver = state(stream).get(1);
            assertThat(receiver.error()).contains("waits until partition 0 was handled up to offset 50");
            assertThat(receiver.member()).isNull();
            go.countDown();
            awaitLag(stream, 0);
            await().atMost(Duration.ofSeconds(60))
                    .untilAsserted(
                            () -> assertThat(state(stream).get(1).member()).isNotNull());
        }
    }

    @Test
    void cancel_beforeTheShardHasGrown_removesWhatWasPrepared() throws SQLException {
        String stream = newStream();
        publish(stream, 0, 20, KEYS);
        Handled handled = new Handled();
        try (Subscription member = eventSql.subscribe(consumer(stream), handled::add)) {
            handled.awaitSize(20);
            prepare(stream, 8);
            assertThat(eventSql.previewGrowth(stream, 8).shards().getFirst().state())
                    .isEqualTo(State.PENDING); // its tables are missing
            assertThat(state(stream))
                    .hasSize(8)
                    .filteredOn(p -> p.partition() >= PARTITIONS)
                    .allSatisfy(p -> {
                        assertThat(p.error()).isEqualTo("is being added to the stream");
                        assertThat(p.member()).isNull();
                    });
            eventSql.cancelGrowth(stream);
            assertThat(state(stream)).hasSize(PARTITIONS);
            eventSql.cancelGrowth(stream);
            prepare(stream, 6);
            eventSql.grow(stream, 6); // another process completes it
            eventSql.cancelGrowth(stream);
            assertThat(state(stream)).as("too late to cancel").hasSize(6);
            publish(stream, 20, 60, KEYS);
            handled.awaitSize(60);
        }
        assertHandledInOrder(handled, 0, 60);
    }

    /** Does what a process does that dies after the first step. */
    private void prepare(String stream, int partitions) throws SQLException {
        Sql.execute(
                cluster.dataSources().getFirst(),
                "SELECT eventsql.add_partitions_v1(stream_id, " + partitions
                        + ", true) FROM eventsql.stream WHERE name = '" + stream + "'");
    }

    @Test
    void grow_outboxesInAndOutsideTheShard_keepOrder() throws Exception {
        String stream = newStream(1);
        try (HikariDataSource application = TestCluster.pool(TestCluster.newDatabase());
                EventSql both = EventSql.builder(cluster.dataSources())
                        .outbox(application)
                        .build()) {
            Handled handled = new Handled();
            try (Subscription member = eventSql.subscribe(consumer(stream), handled::add)) {
                for (int from = 0; from < 400; from += 20) {
                    if (from == 200) {
                        eventSql.grow(stream, 4);
                    }
                    publishTransactional(both, application, stream, "away-", from, from + 20);
                    publishTransactional(both, cluster.dataSources().getFirst(), stream, "own-", from, from + 20);
                }
                handled.awaitSize(800);
            }
            assertThat(handled.texts()).hasSize(800);
            assertOrderOfKeys(handled.events());
            assertThat(partitionsOfKeys(handled.events()).values()).anyMatch(of -> of.size() == 2);
        }
    }

    private static void publishTransactional(
            EventSql from, DataSource database, String stream, String prefix, int first, int end) throws SQLException {
        try (Connection transaction = database.getConnection()) {
            transaction.setAutoCommit(false);
            for (int i = first; i < end; i++) {
                from.outbox().publish(transaction, stream, Event.ofText(prefix + i % 10, Integer.toString(i)));
            }
            transaction.commit();
        }
        from.outbox().committed();
    }

    @Test
    void grow_batchesOfStreamsWithDifferentMaps_areStored() {
        String grown = newStream(2);
        String other = newStream(2);
        eventSql.grow(grown, 4);
        Map<String, Handled> handled = new HashMap<>();
        List<CompletableFuture<EventPosition>> futures = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            futures.add(eventSql.publisher()
                    .publishAsync(i % 2 == 0 ? grown : other, Event.ofText("key-" + i % KEYS, Integer.toString(i))));
        }
        futures.forEach(CompletableFuture::join);
        for (String stream : List.of(grown, other)) {
            Handled of = handled.computeIfAbsent(stream, s -> new Handled());
            try (Subscription member = eventSql.subscribe(consumer(stream), of::add)) {
                of.awaitSize(100);
            }
            assertThat(of.events()).hasSize(100);
            assertOrderOfKeys(of.events());
        }
    }

    @Test
    void grow_threeShards_eachGrowsByItself() {
        try (TestCluster three = TestCluster.ofShards(3)) {
            EventSql publisher = three.open();
            EventSql other = three.open();
            other.createStream(TestStreams.of("sharded").withPartitions(2));
            Handled handled = new Handled();
            try (Subscription member = publisher.subscribe(consumer("sharded"), handled::add)) {
                for (int i = 0; i < 300; i++) {
                    if (i == 150) {
                        Growth growth = other.grow("sharded", 5);
                        assertThat(growth.shards()).hasSize(3);
                        assertThat(growth.isDone()).isTrue();
                    }
                    publisher.publisher().publish("sharded", Event.ofText("key-" + i % 60, Integer.toString(i)));
                }
                handled.awaitSize(300);
            }
            assertHandledInOrder(handled, 0, 300);
            assertThat(handled.events().stream()
                            .filter(event -> event.partition() >= 2)
                            .map(StoredEvent::shard)
                            .distinct())
                    .hasSize(3);
            publisher.createStream(
                    TestStreams.of("sharded").withPartitions(2)); // as the application does at its next start
        }
    }

    @Test
    void grow_deadLettersOfNewPartitions_areCopied() {
        String stream = newStream(1);
        ConsumerSpec spec = consumer(stream)
                .withFailurePolicy(FailurePolicy.DEAD_LETTER)
                .withRetry(RetryPolicy.defaults().withMaxAttempts(1));
        try (Subscription member = eventSql.subscribe(spec, event -> {
            throw new IllegalStateException("fails");
        })) {
            eventSql.grow(stream, 4);
            publish(stream, 0, 40, KEYS);
            await().atMost(Duration.ofSeconds(60))
                    .untilAsserted(
                            () -> assertThat(eventSql.consumer(stream, "c").parkedEvents(100))
                                    .hasSize(40)
                                    .anyMatch(parked -> parked.event().partition() == 3));
        }
        assertThatThrownBy(() -> eventSql.grow(spec.deadLetterStream(), 4))
                .isInstanceOf(InvalidInputException.class)
                .hasMessageContaining("copies of failed events");
    }

    @Test
    void grow_invalidNumberOfPartitions_isRefused() {
        String stream = newStream();
        assertThatThrownBy(() -> eventSql.grow(stream, 1_001))
                .isInstanceOf(InvalidInputException.class)
                .hasMessageContaining("partitions must be between 4");
        assertThatThrownBy(() -> eventSql.grow(stream, 3)).isInstanceOf(InvalidInputException.class);
    }

    /** Neither sees the rows of the other: the new partitions would belong to the consumer only after its next registration. */
    @Test
    void grow_whileAConsumerIsRegistered_itGetsAllPartitions() throws Exception {
        String stream = newStream();
        DataSource database = cluster.dataSources().getFirst();
        try (Connection registering = database.getConnection()) {
            registering.setAutoCommit(false);
            Sql.query(
                    registering,
                    "INSERT INTO eventsql.consumer (stream_id, name) SELECT stream_id, 'new' FROM eventsql.stream"
                            + " WHERE name = ? RETURNING consumer_id",
                    stream);
            CompletableFuture<Growth> growing = CompletableFuture.supplyAsync(() -> eventSql.grow(stream, 8));
            await().until(() -> growing.isDone()
                    || Sql.queryLong(
                                    database,
                                    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                                            + " AND datname = current_database() AND query LIKE '%growth%'")
                            > 0);
            registering.commit();
            assertThat(growing.get().isDone()).isTrue();
        }
        assertThat(Sql.query(
                        database,
                        "SELECT p.partition FROM eventsql.consumer_partition p JOIN eventsql.consumer c USING (consumer_id)"
                                + " JOIN eventsql.stream s USING (stream_id) WHERE s.name = ? AND c.name = 'new'"
                                + " ORDER BY 1",
                        stream))
                .containsExactly("4", "5", "6", "7");
    }
}
