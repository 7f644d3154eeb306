package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.PartitionState;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fault.FaultProxy.RequestFault;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: whatever single statement of a member is slow, cut or answered late, partitions are neither lost for longer than
 * it takes to notice, nor stopped, nor handled by two.
 *
 * <p>Method: one of two instances reaches the database through a proxy that holds or cuts a chosen statement, so that
 * each case happens every time.
 */
@Timeout(300)
class MembershipFaultsIT {
    private static final int PARTITIONS = 4;
    private static final Duration DEADLINE = Duration.ofSeconds(60);
    private static final AtomicInteger STREAMS = new AtomicInteger();

    private static EventsDb eventsDb;

    private final String stream = "faults" + STREAMS.incrementAndGet();
    private final ConsumerSpec spec = ConsumerSpec.of(stream, "c");
    private Settings settings;
    private FaultProxy proxy;
    private HikariDataSource faultyPool;
    private HikariDataSource goodPool;
    private EventSql good;
    private EventSql faulty;

    @BeforeAll
    static void startServer() {
        eventsDb = EventsDb.start();
    }

    @AfterAll
    static void stopServer() {
        eventsDb.close();
    }

    @BeforeEach
    void open() {
        open(Settings.builder().lease(Duration.ofMinutes(1)).heartbeat(Duration.ofMillis(200)));
    }

    private void open(Settings.Builder builder) {
        closeAll();
        settings = builder.build();
        proxy = FaultProxy.to(eventsDb.jdbcUrl());
        goodPool = Pools.pool(eventsDb);
        faultyPool = Pools.pool(eventsDb, proxy.jdbcUrl(), config -> config.setConnectionTimeout(30_000));
        good = EventSql.builder(goodPool).settings(settings).build();
        good.createStream(StreamSpec.of(stream).withPartitions(PARTITIONS));
        faulty = EventSql.builder(faultyPool).settings(settings).build();
    }

    @AfterEach
    void closeAll() {
        if (proxy != null) {
            proxy.heal();
            faulty.close(Duration.ofSeconds(5));
            good.close(Duration.ofSeconds(5));
            proxy.close();
            faultyPool.close();
            goodPool.close();
        }
    }

    private void publish(int events) {
        for (int i = 0; i < events; i++) {
            good.publisher().publish(stream, Event.ofText("key" + i, "value" + i));
        }
    }

    private List<PartitionState> states() {
        return good.consumer(stream, "c").state();
    }

    private long members() throws Exception {
        return Sql.queryLong(goodPool, "SELECT count(*) FROM eventsql.consumer_member");
    }

    /** The member of each partition; those that nobody holds are left out. */
    private Map<Integer, String> holders() throws SQLException {
        Map<Integer, String> holders = new HashMap<>();
        for (String row : Sql.query(
                goodPool,
                "SELECT p.partition || ' ' || p.member_id FROM eventsql.consumer_partition p"
                        + " JOIN eventsql.consumer USING (consumer_id) JOIN eventsql.stream s USING (stream_id)"
                        + " WHERE p.member_id IS NOT NULL AND s.name = ?",
                stream)) {
            String[] fields = row.split(" ", -1);
            holders.put(Integer.parseInt(fields[0]), fields[1]);
        }
        return holders;
    }

    /** Waits until so many members hold all partitions. */
    private void awaitHeldBy(int members) {
        await().atMost(DEADLINE)
                .until(() -> holders().size() == PARTITIONS
                        && Set.copyOf(holders().values()).size() == members);
    }

    @Test
    void close_whileItsHeartbeatIsUnderWay_theMemberCountsNoMore() throws Exception {
        Subscription member = faulty.subscribe(spec, event -> {});
        awaitHeldBy(1);
        proxy.planRequests("heartbeat_v1", number -> number == 1 ? RequestFault.HOLD_REQUEST : null);
        await().atMost(DEADLINE).until(() -> proxy.heldConnections() == 1);
        CompletableFuture<Boolean> closing =
                CompletableFuture.supplyAsync(() -> member.close(Duration.ofSeconds(5)), Thread::startVirtualThread);
        closing.copy().completeOnTimeout(false, 1, TimeUnit.SECONDS).join(); // it may wait for the heartbeat
        proxy.releaseHeld();
        assertThat(closing.join()).isTrue();
        assertThat(faulty.close(Duration.ofSeconds(20))).isTrue(); // whatever was under way has ended
        assertThat(members()).isZero();
        Handled handled = new Handled();
        good.subscribe(spec, handled::add);
        publish(20);
        handled.awaitSize(20);
    }

    @Test
    void take_whileTheHeadsAreRead_isNotTakenForALostLog() throws Exception {
        Handled handled = new Handled();
        Subscription former = good.subscribe(spec, handled::add);
        publish(20);
        handled.awaitSize(20);
        String formerId = holders().get(0);
        proxy.planRequests("heads_v1", number -> number == 1 ? RequestFault.HOLD_RESPONSE : null);
        List<String> stopped = new CopyOnWriteArrayList<>();
        faulty.close();
        faulty = EventSql.builder(faultyPool)
                .settings(settings)
                .listener(new ConsumerListener() {
                    @Override
                    public void partitionStopped(ConsumerPartition partition, long nextOffset, String error) {
                        stopped.add(error);
                    }
                })
                .build();
        faulty.subscribe(spec, handled::add);
        await().atMost(DEADLINE).until(() -> proxy.heldConnections() == 1); // it has read the heads as they are now
        awaitHeldBy(2);
        publish(20);
        Map<Integer, String> holders = holders();
        await().atMost(DEADLINE)
                .until(() -> states().stream()
                        .filter(state -> formerId.equals(holders.get(state.partition())))
                        .allMatch(state -> state.lag() == 0));
        former.close();
        awaitHeldBy(1);
        proxy.releaseHeld();
        publish(20);
        handled.awaitSize(60);
        assertThat(stopped).isEmpty();
        assertThat(handled.size()).isEqualTo(60);
    }

    @Test
    void take_answerLost_theMemberTakesThemAgainAtOnce() throws Exception {
        publish(20);
        Handled handled = new Handled();
        proxy.planRequests("parked_key", number -> RequestFault.HOLD_RESPONSE); // before the COMMIT of taking
        faulty.subscribe(spec, handled::add);
        await().atMost(DEADLINE).until(() -> proxy.heldConnections() == 1);
        proxy.planRequests(FaultProxy.COMMIT, number -> number == 1 ? RequestFault.CUT_BEFORE_RESPONSE : null);
        proxy.releaseHeld();
        handled.awaitSize(20); // the lease of those that it does not know it has taken is longer
        assertThat(proxy.requests()).isGreaterThan(1);
        assertThat(handled.size()).isEqualTo(20);
    }

    @Test
    void take_standsStillInItsTransaction_othersTakeThePartitions() throws Exception {
        open(Settings.builder()
                .lease(Duration.ofSeconds(2))
                .heartbeat(Duration.ofMillis(200))
                .networkTimeout(Duration.ofSeconds(2)));
        publish(20);
        proxy.planRequests("parked_key", number -> RequestFault.HOLD_REQUEST);
        Handled byFaulty = new Handled();
        faulty.subscribe(spec, byFaulty::add);
        await().atMost(DEADLINE).until(() -> proxy.heldConnections() == 1); // it has locked the partitions
        proxy.blackhole(); // and nothing more is heard of it
        Handled byGood = new Handled();
        good.subscribe(spec, byGood::add);
        byGood.awaitSize(20);
        assertThat(byFaulty.size()).isZero();
    }

    @Test
    void commit_isHeldBack_leasesAreRenewedAllTheSame() throws Exception {
        open(Settings.builder().lease(Duration.ofSeconds(4)).heartbeat(Duration.ofMillis(500)));
        Handled handled = new Handled();
        faulty.subscribe(spec, handled::add);
        awaitHeldBy(1);
        proxy.planRequests("commit_offsets_v1", number -> number == 1 ? RequestFault.HOLD_REQUEST : null);
        publish(20);
        await().atMost(DEADLINE).until(() -> proxy.heldConnections() == 1);
        good.subscribe(spec, handled::add); // the other gives partitions back, which it would commit before
        long from = renewedUntilMs();
        AtomicBoolean expired = new AtomicBoolean();
        await().atMost(DEADLINE).until(() -> {
            long until = renewedUntilMs();
            expired.compareAndSet(false, until < databaseClockMs());
            return until > from + 6_000;
        });
        assertThat(expired).isFalse();
        proxy.releaseHeld();
        await().atMost(DEADLINE).until(() -> states().stream().allMatch(state -> state.lag() == 0));
    }

    @Test
    void heartbeat_isNeverAnswered_anotherOneRenewsTheLeasesInTime() throws Exception {
        open(Settings.builder().lease(Duration.ofSeconds(6)).heartbeat(Duration.ofSeconds(2)));
        faulty.subscribe(spec, event -> {});
        awaitHeldBy(1);
        proxy.planRequests("heartbeat_v1", number -> number == 1 ? RequestFault.HOLD_REQUEST : null);
        await().atMost(DEADLINE).until(() -> proxy.heldConnections() == 1);
        long from = renewedUntilMs();
        AtomicBoolean expired = new AtomicBoolean();
        await().atMost(DEADLINE).until(() -> {
            long until = renewedUntilMs();
            expired.compareAndSet(false, until < databaseClockMs());
            return until > from;
        });
        assertThat(expired).isFalse();
    }

    @Test
    void commit_storedAfterItWasGivenUp_theEffectHappensOnce() throws Exception {
        open(Settings.builder().networkTimeout(Duration.ofSeconds(1)));
        Sql.execute(goodPool, "CREATE TABLE public.effect_of_late_commit (value text)");
        AtomicInteger calls = new AtomicInteger();
        CountDownLatch goOn = new CountDownLatch(1);
        faulty.subscribeTransactional(spec, (event, connection) -> {
            try (PreparedStatement insert =
                    connection.prepareStatement("INSERT INTO public.effect_of_late_commit VALUES (?)")) {
                insert.setString(1, event.text());
                insert.executeUpdate();
            }
            if (event.text().equals("first") && calls.incrementAndGet() == 2) {
                goOn.await();
                throw new IllegalStateException("has to be tried once more");
            }
        });
        awaitHeldBy(1);
        proxy.planRequests(FaultProxy.COMMIT, number -> number == 1 ? RequestFault.HOLD_REQUEST : null);
        int partition =
                good.publisher().publish(stream, Event.ofText("key", "first")).partition();
        await().atMost(DEADLINE).until(() -> calls.get() == 2); // the answer is not waited for any longer
        proxy.releaseHeld();
        await().atMost(DEADLINE).until(() -> states().get(partition).nextOffset() == 1);
        // Another partition's commit is in doubt, so that all offsets are read.
        proxy.planRequests(FaultProxy.COMMIT, number -> number == 1 ? RequestFault.CUT_BEFORE_RESPONSE : null);
        String otherKey = "other";
        while (good.publisher()
                        .publish(stream, Event.ofText(otherKey, otherKey))
                        .partition()
                == partition) {
            otherKey += "+";
        }
        int more = otherKey.length() - "other".length();
        await().atMost(DEADLINE)
                .until(() -> states().stream().mapToLong(PartitionState::lag).sum() == more);
        goOn.countDown();
        await().atMost(DEADLINE).until(() -> states().stream().allMatch(state -> state.lag() == 0));
        good.publisher().publish(stream, Event.ofText("key", "last"));
        await().atMost(DEADLINE).until(() -> states().stream().allMatch(state -> state.lag() == 0));
        assertThat(Sql.query(goodPool, "SELECT value FROM public.effect_of_late_commit"))
                .doesNotHaveDuplicates()
                .contains("first", "last")
                .hasSize(3 + more);
    }

    /** When the next lease of this stream's consumer ends. */
    private long renewedUntilMs() throws SQLException {
        return Long.parseLong(Sql.query(
                        goodPool,
                        "SELECT (extract(epoch FROM min(p.expires_at)) * 1000)::bigint FROM eventsql.consumer_partition p"
                                + " JOIN eventsql.consumer USING (consumer_id) JOIN eventsql.stream s USING (stream_id)"
                                + " WHERE s.name = ?",
                        stream)
                .getFirst());
    }

    private long databaseClockMs() throws SQLException {
        return Sql.queryLong(goodPool, "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint");
    }
}
