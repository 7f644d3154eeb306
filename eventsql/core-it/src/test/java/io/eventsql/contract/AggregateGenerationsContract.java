package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ContinuousAggregate;
import io.eventsql.ContinuousAggregate.Window;
import io.eventsql.ContinuousAggregateSpec;
import io.eventsql.EventSql;
import io.eventsql.Subscription;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

/** The end of a generation of a continuous aggregate whose page is still handled, and the view of one. */
abstract class AggregateGenerationsContract extends AggregateFixture {
    AggregateGenerationsContract(ContractCluster databases) {
        super(databases);
    }

    /** Blocks one page of an aggregate. */
    private static final class Blockade {
        private final AtomicBoolean begun = new AtomicBoolean();
        private final CountDownLatch reached = new CountDownLatch(1);
        private final CountDownLatch released = new CountDownLatch(1);

        /** Returns a declaration whose next event, once the blockade has begun, waits for its end. */
        ContinuousAggregateSpec on(ContinuousAggregateSpec spec) {
            return spec.withFilter(event -> {
                if (begun.compareAndSet(true, false)) {
                    reached.countDown();
                    try {
                        released.await();
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                }
                return spec.filter().test(event);
            });
        }
    }

    /**
     * Rebuilds an aggregate while a page of the generation that has served until then is still handled. Returns the
     * member of that generation, once it was closed and its consumer deleted.
     */
    private Subscription rebuildWhileBlocked(EventSql process, ContinuousAggregate aggregate, Blockade blockade)
            throws InterruptedException {
        Subscription former = process.subscriptions().getFirst();
        String stream = aggregate.spec().stream();
        publish(stream, 50);
        awaitModel(aggregate);
        blockade.begun.set(true);
        publish(stream, 50);
        blockade.reached.await();
        aggregate.rebuild();
        await().atMost(DEADLINE)
                .until(() -> process.positions(stream, former.spec().name()).isEmpty());
        awaitModel(aggregate);
        return former;
    }

    @Test
    void rebuild_pageOfTheOldGenerationIsStillHandled_itsMemberEndsAfterIt() throws Exception {
        Blockade blockade = new Blockade();
        try (EventSql process = cluster.open();
                ContinuousAggregate aggregate =
                        process.startContinuousAggregate(blockade.on(AggregateModel.spec(newName(), newStream())))) {
            Subscription former = rebuildWhileBlocked(process, aggregate, blockade);
            assertThat(process.subscriptions())
                    .extracting(member -> member.spec().name())
                    .containsExactly(aggregate.consumerName());
            assertThat(former.close(Duration.ZERO)).as("ended").isFalse();
            blockade.released.countDown();
            await().atMost(DEADLINE).until(() -> former.close(Duration.ZERO));
            awaitModel(aggregate);
        }
    }

    @Test
    void close_pageOfTheOldGenerationIsStillHandled_returnsTrueOnlyAfterIt() throws Exception {
        Blockade blockade = new Blockade();
        try (EventSql process = cluster.open();
                ContinuousAggregate aggregate =
                        process.startContinuousAggregate(blockade.on(AggregateModel.spec(newName(), newStream())))) {
            Subscription former = rebuildWhileBlocked(process, aggregate, blockade);
            assertThat(former.isRunning()).isFalse();
            assertThat(aggregate.close(Duration.ofMillis(100))).isFalse();
            assertThat(aggregate.close(Duration.ofMillis(100)))
                    .as("second call")
                    .isFalse();
            blockade.released.countDown();
            assertThat(aggregate.close(DEADLINE)).isTrue();
        }
    }

    /** The new functions fail for the first events, which the old generation has counted long ago. */
    @Test
    void rebuild_newGenerationIsStuck_pagesOfTheOldOneWaitOnce() {
        String stream = newStream();
        ContinuousAggregateSpec spec = AggregateModel.spec(newName(), stream);
        AtomicBoolean fails = new AtomicBoolean();
        ContinuousAggregateSpec changed = spec.withFilter(event -> {
            if (fails.get() && event.offset() == 0) {
                throw new IllegalStateException("the first event");
            }
            return spec.filter().test(event);
        });
        String waits = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
                + " WHERE d.datname = current_database() AND l.mode = 'RowShareLock'"
                + " AND l.relation = '\"" + spec.name() + "__coverage\"'::regclass";
        publish(stream, 50);
        try (EventSql process = cluster.open();
                ContinuousAggregate aggregate = process.startContinuousAggregate(changed)) {
            awaitModel(aggregate);
            fails.set(true);
            aggregate.rebuild();
            await().atMost(DEADLINE).until(() -> cluster.sum(waits) > 0);
            await().atMost(DEADLINE).during(Duration.ofSeconds(2)).until(() -> cluster.sum(waits) == 0);
            fails.set(false);
            await().atMost(DEADLINE).until(() -> !aggregate.isRebuilding());
            awaitModel(aggregate);
        }
    }

    @Test
    void table_inSchemaWithAnyName_isReadWithSql() throws SQLException {
        String stream = newStream();
        cluster.execute("CREATE SCHEMA IF NOT EXISTS \"My \"\"Reports\"\"\"");
        String table = "Orders' \\ per \"" + stream + "\"";
        publish(stream, 100);
        try (ContinuousAggregate aggregate = eventSql.startContinuousAggregate(
                AggregateModel.spec(newName(), stream).withTable("My \"Reports\"", table))) {
            awaitModel(aggregate);
            List<Window> windows = windows(aggregate);
            String view = "\"My \"\"Reports\"\"\".\"" + table.replace("\"", "\"\"") + "\"";
            assertThat(cluster.sum("SELECT coalesce(sum(events), 0) FROM " + view))
                    .isEqualTo(windows.stream().mapToLong(Window::events).sum());
            assertThat(cluster.sum("SELECT coalesce(sum(cents_sum)::bigint, 0) FROM " + view
                            + " WHERE window_end = window_start + interval '7 seconds'"))
                    .isEqualTo(windows.stream()
                            .mapToLong(w -> w.measures().get("cents").sum().longValueExact())
                            .sum());
        }
    }
}
