package io.eventsql.publish;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.fixture.AppendFixture;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.fixture.proxy.FaultProxy;
import io.eventsql.fixture.proxy.FaultProxy.RequestFault;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How the publisher handles the outcomes of the append function: lock waits, rejections, a missing segment. */
class AppendOutcomeIT extends AppendFixture {
    @Test
    void publish_poolIsRepeatableReadWithoutAutocommit_works() throws Exception {
        try (HikariDataSource strict = Pools.pool(eventsDb, eventsDb.jdbcUrl(), config -> {
                    config.setAutoCommit(false);
                    config.setTransactionIsolation("TRANSACTION_REPEATABLE_READ");
                });
                EventSql library = EventSql.builder(strict)
                        .settings(Settings.builder().maxBatchEvents(100).build())
                        .build()) {
            library.createStream(TestStreams.of("strict_pool").withPartitions(2).withSegmentSize(100));
            Queue<String> handled = new ConcurrentLinkedQueue<>();
            library.subscribe(ConsumerSpec.of("strict_pool", "reader"), event -> handled.add(event.text()));
            List<String> published = new ArrayList<>();
            for (int i = 0; i < 60; i++) {
                library.publisher().publish("strict_pool", Event.ofText("k", "single" + i));
                library.publisher()
                        .publishAll("strict_pool", List.of(Event.ofText("all" + i), Event.ofText("k2", "b" + i)));
                Collections.addAll(published, "single" + i, "all" + i, "b" + i);
            }
            await().atMost(Duration.ofSeconds(120))
                    .untilAsserted(() -> assertThat(handled).containsExactlyInAnyOrderElementsOf(published));
            await().atMost(Duration.ofSeconds(120))
                    .untilAsserted(() -> assertThat(library.positions("strict_pool", "reader"))
                            .allMatch(position -> position.lag() == 0));
            Ledger.assertGapless(read("strict_pool"));
            List<StoredEvent> range = library.read(new EventPosition("strict_pool", 0, 0, 0), 10);
            assertThat(range).isNotEmpty();
            try (Connection connection = strict.getConnection()) {
                assertThat(connection.getAutoCommit())
                        .as("autocommit of a returned connection")
                        .isFalse();
                assertThat(connection.getTransactionIsolation()).isEqualTo(Connection.TRANSACTION_REPEATABLE_READ);
            }
        }
    }

    /**
     * Two publishers fill batches for the same partitions of two streams, each in its own order. Without a common lock
     * order they would deadlock, and the server would cancel one of them after a second.
     */
    @Test
    void publishAll_twoPublishersInOppositeOrder_neverDeadlock() throws Exception {
        eventSql.createStream(TestStreams.of("order_a").withPartitions(4));
        eventSql.createStream(TestStreams.of("order_b").withPartitions(4));
        List<Event> events = IntStream.range(0, 40)
                .mapToObj(i -> Event.ofText("key" + i, "e" + i))
                .toList();
        List<Event> reversed = new ArrayList<>(events);
        Collections.reverse(reversed);
        long deadlocks = deadlocks();
        try (HikariDataSource own = Pools.pool(eventsDb);
                EventSql one = EventSql.builder(own).build();
                EventSql other = EventSql.builder(own).build()) {
            for (int i = 0; i < 25; i++) {
                List<CompletableFuture<?>> open = List.of(
                        one.publisher().publishAllAsync("order_a", events),
                        one.publisher().publishAllAsync("order_b", events),
                        other.publisher().publishAllAsync("order_b", reversed),
                        other.publisher().publishAllAsync("order_a", reversed));
                for (CompletableFuture<?> future : open) {
                    future.get(120, TimeUnit.SECONDS);
                }
            }
        }
        assertThat(read("order_a")).hasSize(2_000);
        assertThat(read("order_b")).hasSize(2_000);
        await().atMost(Duration.ofSeconds(120)) // a backend reports its counters when a transaction ends
                .until(() -> number("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%append_v%'"
                                + " AND pid <> pg_backend_pid() AND state = 'active'")
                        == 0);
        assertThat(deadlocks()).isEqualTo(deadlocks);
    }

    private static long deadlocks() throws SQLException {
        return number("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()");
    }

    @ParameterizedTest
    @ValueSource(strings = {"check", "trigger"})
    void publish_databaseRejectsSomeEvents_onlyThoseCallsFail(String how) throws Exception {
        String stream = "rejects_by_" + how;
        createStream(stream, 3);
        String table = TestStreams.table(stream);
        if (how.equals("check")) {
            assumeThat(TestStreams.areBlocks())
                    .as("a block has no column of values")
                    .isFalse();
            execute("ALTER TABLE " + table + " ADD CONSTRAINT no_poison CHECK (value <> 'poison')");
        } else {
            execute("CREATE FUNCTION reject() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                    + " IF " + TestStreams.anyNew("e.value = 'poison'")
                    + " THEN RAISE EXCEPTION 'poison' USING ERRCODE = '22023'; END IF;"
                    + " RETURN NEW; END $$");
            execute("CREATE TRIGGER reject BEFORE INSERT ON " + table + " FOR EACH ROW EXECUTE FUNCTION reject()");
        }
        Ledger ledger = new Ledger();
        List<Event> good = new ArrayList<>();
        List<CompletableFuture<EventPosition>> goodFutures = new ArrayList<>();
        List<CompletableFuture<?>> badFutures = new ArrayList<>();
        try (Connection holder = pool.getConnection();
                Statement statement = holder.createStatement()) {
            holder.setAutoCommit(false);
            // While the partitions are locked, the calls gather in one batch per lane.
            statement.execute("SELECT FROM eventsql.stream_partition FOR UPDATE");
            for (int i = 0; i < 900; i++) { // more than fit into the existing segments
                if (i % 97 == 30) {
                    badFutures.add(eventSql.publisher().publishAsync(stream, Event.ofText("k" + i % 7, "poison")));
                    badFutures.add(eventSql.publisher().publishAsync(stream, Event.ofText("poison")));
                    badFutures.add(eventSql.publisher()
                            .publishAllAsync(
                                    stream, List.of(Event.ofText("k0", "with poison"), Event.ofText("k1", "poison"))));
                }
                Event event = ledger.next(i % 5 == 4 ? null : "k" + i % 7);
                good.add(event);
                goodFutures.add(eventSql.publisher().publishAsync(stream, event));
            }
            holder.commit();
        }
        for (CompletableFuture<?> bad : badFutures) {
            assertThatThrownBy(() -> bad.get(120, TimeUnit.SECONDS))
                    .isInstanceOf(ExecutionException.class)
                    .cause()
                    .isInstanceOf(EventNotStoredException.class)
                    .hasMessageContaining("poison");
        }
        for (int i = 0; i < good.size(); i++) {
            ledger.stored(good.get(i), goodFutures.get(i).get(120, TimeUnit.SECONDS));
        }
        List<Ledger.Stored> stored = read(stream);
        assertThat(stored).hasSize(good.size());
        ledger.verify(stored);
    }

    /**
     * The segment is missing when the append arrives, but exists when the library asks for it, because another process was
     * faster. The proxy holds that request until the other process has stored an event.
     */
    @Test
    void publish_anotherProcessAddsMissingSegmentFirst_isStored() throws Exception {
        createStream("segment_race", 1);
        append(1, Part.of("segment_race", 0, values(0, 100)));
        append(2, Part.of("segment_race", 0, values(100, 200)));
        try (FaultProxy proxy = FaultProxy.to(eventsDb.jdbcUrl());
                HikariDataSource proxied = Pools.pool(eventsDb, proxy.jdbcUrl());
                EventSql slow = EventSql.builder(proxied)
                        .settings(Settings.builder()
                                .publishTimeout(Duration.ofSeconds(60))
                                .build())
                        .build()) {
            proxy.planRequests("ensure_segments_v1", number -> number == 1 ? RequestFault.HOLD_REQUEST : null);
            CompletableFuture<EventPosition> late = slow.publisher().publishAsync("segment_race", Event.ofText("late"));
            await().atMost(Duration.ofSeconds(120)).until(() -> proxy.requests() == 1);
            assertThat(eventSql.publisher()
                            .publish("segment_race", Event.ofText("fast"))
                            .offset())
                    .isEqualTo(200);
            proxy.releaseHeld();
            assertThat(late.get(120, TimeUnit.SECONDS).offset()).isEqualTo(201);
        }
    }
}
