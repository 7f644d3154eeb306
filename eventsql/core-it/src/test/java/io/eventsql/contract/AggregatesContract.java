package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.ContinuousAggregate;
import io.eventsql.ContinuousAggregate.Coverage;
import io.eventsql.ContinuousAggregate.Window;
import io.eventsql.ContinuousAggregateSpec;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.InvalidInputException;
import io.eventsql.OutOfRangePolicy;
import io.eventsql.Retention;
import io.eventsql.StartPosition;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.Sql;
import java.sql.SQLException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;

/** Continuous aggregates equal what their model computes from the whole stream. */
abstract class AggregatesContract extends AggregateFixture {
    /** The members must catch up with the load. */
    private static final long LOAD_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    AggregatesContract(ContractCluster databases) {
        super(databases);
    }

    @Test
    void aggregate_membersComeAndGo_equalsModel() {
        String stream = newStream();
        ContinuousAggregateSpec spec = AggregateModel.spec(newName(), stream);
        publish(stream, 300);
        ContinuousAggregate first = eventSql.startContinuousAggregate(spec);
        awaitModel(first);
        try (EventSql other = cluster.open();
                ContinuousAggregate second = other.startContinuousAggregate(spec)) {
            publish(stream, 300);
            first.close();
            publish(stream, 300);
            awaitModel(second);
        }
        publish(stream, 300);
        try (ContinuousAggregate restarted = eventSql.startContinuousAggregate(spec)) {
            awaitModel(restarted);
            assertThat(restarted.coverage())
                    .hasSize(shards * PARTITIONS)
                    .allMatch(Coverage::isServing)
                    .allMatch(c -> c.firstOffset() == 0);
            List<Window> all = windows(restarted);
            Instant from = AggregateModel.START.plusSeconds(10);
            assertThat(restarted.windows("shop-3", from, from.plusSeconds(20), 10))
                    .isEqualTo(all.stream()
                            .filter(w -> "shop-3".equals(w.key()))
                            .filter(w -> !w.start().isBefore(from) && w.start().isBefore(from.plusSeconds(20)))
                            .toList())
                    .isNotEmpty();
            assertThat(restarted.windows(null, Instant.EPOCH, from, 1)).hasSize(1);
            assertThat(restarted.windows(Instant.EPOCH, from, 5)).isEqualTo(all.subList(0, 5));
        }
    }

    @Test
    void rebuild_underLoad_servesTheOldResultsUntilTheNewOnesHaveCaughtUp() throws Exception {
        String stream = newStream();
        ContinuousAggregateSpec spec = AggregateModel.spec(newName(), stream);
        publish(stream, 200);
        AtomicBoolean stopped = new AtomicBoolean();
        try (EventSql other = cluster.open();
                ContinuousAggregate aggregate = eventSql.startContinuousAggregate(spec);
                ContinuousAggregate alsoMember = other.startContinuousAggregate(spec)) {
            awaitModel(aggregate);
            String before = aggregate.consumerName();
            CompletableFuture<Void> load = CompletableFuture.runAsync(() -> {
                while (!stopped.get()) {
                    publish(stream, 20);
                    LockSupport.parkNanos(LOAD_PAUSE_NANOS);
                }
            });
            alsoMember.rebuild();
            alsoMember.rebuild();
            long events = 0;
            do {
                long now = windows(aggregate).stream().mapToLong(Window::events).sum();
                assertThat(now).as("events, which never become fewer").isGreaterThanOrEqualTo(events);
                events = now;
            } while (aggregate.isRebuilding());
            assertThat(windows(aggregate).stream().mapToLong(Window::events).sum())
                    .isGreaterThanOrEqualTo(events);
            stopped.set(true);
            load.get();
            awaitModel(aggregate);
            await().atMost(DEADLINE).until(() -> !aggregate.consumerName().equals(before));
            await().atMost(DEADLINE)
                    .until(() -> eventSql.positions(stream, before).isEmpty()
                            && cluster.sum("SELECT count(DISTINCT generation) FROM \"" + spec.name() + "__partials\"")
                                    <= shards);
            awaitModel(aggregate);
        }
    }

    /** What was counted of the former stream has offsets that the new one has, too. */
    @Test
    void start_streamWasCreatedAnew_countsNothingUntilItIsRebuilt() {
        String stream = newStream();
        ContinuousAggregateSpec spec = AggregateModel.spec(newName(), stream);
        publish(stream, 100);
        try (ContinuousAggregate former = eventSql.startContinuousAggregate(spec)) {
            awaitModel(former);
        }
        StreamSpec same = eventSql.streams().stream()
                .filter(each -> each.name().equals(stream))
                .findFirst()
                .orElseThrow();
        eventSql.deleteStream(stream, eventSql.previewDeleteStream(stream).confirmation());
        eventSql.createStream(same);
        publish(stream, 50);
        try (CapturedLog log = CapturedLog.ofConsuming();
                ContinuousAggregate anew = eventSql.startContinuousAggregate(spec)) {
            await().atMost(DEADLINE)
                    .until(() -> !log.lines("Handler of consumer " + anew.consumerName() + " failed")
                            .isEmpty());
            assertThat(anew.coverage().stream().mapToLong(Coverage::nextOffset).sum())
                    .as("what the former stream had")
                    .isEqualTo(100);
            anew.rebuild();
            awaitModel(anew);
        }
    }

    @Test
    void rebuild_afterRetentionAndErasure_coversWhatIsLeft() throws SQLException {
        String stream = newStream(StreamSpec.of(newName()).withPartitions(1).withSegmentSize(100));
        ContinuousAggregateSpec spec = AggregateModel.spec(newName(), stream);
        publish(stream, 600 * shards);
        try (ContinuousAggregate aggregate = eventSql.startContinuousAggregate(spec)) {
            awaitModel(aggregate);
            List<Window> before = windows(aggregate);
            expire(stream);
            eventSql.erase(stream, "order-7");
            assertThat(windows(aggregate)).isEqualTo(before);
            aggregate.rebuild();
            await().atMost(DEADLINE).until(() -> !aggregate.isRebuilding());
            List<StoredEvent> left = remaining(stream);
            await().atMost(DEADLINE)
                    .untilAsserted(() -> assertThat(windows(aggregate)).isEqualTo(AggregateModel.windows(left)));
            assertThat(aggregate.coverage())
                    .filteredOn(Coverage::isServing)
                    .allSatisfy(covered -> assertThat(covered.firstOffset())
                            .isGreaterThanOrEqualTo(eventSql.positions(stream, aggregate.consumerName())
                                    .get(covered.shard())
                                    .logStart())
                            .isPositive());
        }
    }

    /** The process that began the rebuild has ended before retention removed the first segments. */
    @Test
    void rebuild_retentionOvertakesIt_coversWhatIsLeft() throws SQLException {
        String stream = newStream(StreamSpec.of(newName()).withPartitions(1).withSegmentSize(100));
        ContinuousAggregateSpec spec = AggregateModel.spec(newName(), stream);
        publish(stream, 600 * shards);
        String former;
        try (ContinuousAggregate aggregate = eventSql.startContinuousAggregate(spec)) {
            awaitModel(aggregate);
            former = aggregate.consumerName();
        }
        int generation = Integer.parseInt(former.substring(former.lastIndexOf('_') + 1)) + 1;
        String consumer = "aggregate_" + spec.name() + "_" + generation;
        eventSql.subscribe(ConsumerSpec.of(stream, consumer), event -> {}).close();
        eventSql.consumer(stream, consumer).seek(StartPosition.EARLIEST);
        cluster.execute("UPDATE \"" + spec.name() + "__state\" SET rebuilding = " + generation);
        expire(stream);
        try (EventSql process = cluster.open();
                ContinuousAggregate aggregate = process.startContinuousAggregate(spec)) {
            await().atMost(DEADLINE).until(() -> !aggregate.isRebuilding());
            assertThat(windows(aggregate)).isEqualTo(AggregateModel.windows(remaining(stream)));
            await().atMost(DEADLINE)
                    .untilAsserted(() -> assertThat(process.subscriptions())
                            .singleElement()
                            .satisfies(member -> {
                                assertThat(member.spec().name()).isEqualTo(consumer);
                                assertThat(member.spec().outOfRangePolicy()).isEqualTo(OutOfRangePolicy.FAIL);
                            }));
        }
    }

    /** Lets the events of a stream with one partition and segments of 100 events expire, except some 150 of each shard. */
    private void expire(String stream) throws SQLException {
        eventSql.alterStream(stored(StreamSpec.of(stream)
                .withPartitions(1)
                .withSegmentSize(100)
                .withRetention(Retention.FOREVER.withMaxEvents(150))));
        for (DataSource database : cluster.dataSources()) {
            await().atMost(DEADLINE)
                    .until(
                            () -> Sql.query(database, "SELECT eventsql.expire_v1()")
                                    .getFirst(),
                            step -> step.equals("finished") || step.equals("idle"));
        }
    }

    private List<StoredEvent> remaining(String stream) throws SQLException {
        List<StoredEvent> all = new ArrayList<>();
        for (int shard = 0; shard < shards; shard++) {
            long start = Sql.queryLong(
                    database(shard), "SELECT log_start FROM eventsql.partition_head WHERE stream = '" + stream + "'");
            all.addAll(eventSql.read(new EventPosition(stream, shard, 0, start), 10_000));
        }
        return all;
    }

    @Test
    void consumer_movedBackOrDeleted_countsNothingTwice() {
        String stream = newStream();
        publish(stream, 100);
        try (ContinuousAggregate aggregate =
                eventSql.startContinuousAggregate(AggregateModel.spec(newName(), stream))) {
            awaitModel(aggregate);
            eventSql.consumer(stream, aggregate.consumerName()).seek(StartPosition.EARLIEST);
            publish(stream, 100);
            awaitModel(aggregate);
            eventSql.consumer(stream, aggregate.consumerName()).delete();
            publish(stream, 100);
            awaitModel(aggregate);
        }
    }

    @Test
    void declaration_changed_isRefusedUntilDropped() {
        String stream = newStream();
        ContinuousAggregateSpec spec = AggregateModel.spec(newName(), stream);
        publish(stream, 50);
        try (ContinuousAggregate aggregate = eventSql.startContinuousAggregate(spec)) {
            awaitModel(aggregate);
        }
        ContinuousAggregateSpec changed = spec.withMeasure("more", event -> 1);
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> eventSql.startContinuousAggregate(changed))
                .withMessageContaining("measures [cents, half, more]")
                .withMessageContaining("were created for")
                .withMessageContaining("another name");
        eventSql.dropContinuousAggregate(changed);
        eventSql.dropContinuousAggregate(changed);
        try (ContinuousAggregate aggregate = eventSql.startContinuousAggregate(changed)) {
            long events = AggregateModel.windows(readAll(stream)).stream()
                    .mapToLong(Window::events)
                    .sum();
            await().atMost(DEADLINE)
                    .untilAsserted(() -> assertThat(windows(aggregate).stream()
                                    .mapToLong(w -> w.measures().get("more").count())
                                    .sum())
                            .isEqualTo(events));
        }
    }
}
