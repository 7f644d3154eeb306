package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.PartitionState;
import io.eventsql.RetryPolicy;
import io.eventsql.Settings;
import io.eventsql.Subscription;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.SharedServerDatabase;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.proxy.FaultProxy;
import io.eventsql.fixture.proxy.FaultProxy.RequestFault;
import java.sql.Connection;
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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: whichever single statement of a member is slow, cut or answered late, a partition is without an owner only until
 * that is detected, is not stopped, and is never handled by two members.
 *
 * <p>Method: one of two instances connects through a proxy that holds or cuts a chosen statement, so that each case happens
 * every time.
 */
@Timeout(300)
class MembershipFaultsIT {
    private static final int PARTITIONS = 2;
    private static final Duration DEADLINE = Duration.ofSeconds(120);

    private static EventsDb eventsDb;
    private static HikariDataSource goodPool;

    private final String stream = TestStreams.newName();
    private final ConsumerSpec spec = ConsumerSpec.of(stream, "c");
    private Settings settings;
    private FaultProxy proxy;
    private HikariDataSource faultyPool;
    private EventSql good;
    private EventSql faulty;

    @BeforeAll
    static void startServer() {
        eventsDb = SharedServerDatabase.create();
        goodPool = Pools.pool(eventsDb);
    }

    @AfterAll
    static void stopServer() {
        goodPool.close();
        eventsDb.close();
    }

    private void open() {
        open(Settings.builder().lease(Duration.ofMinutes(1)).heartbeat(Duration.ofMillis(200)));
    }

    private void open(Settings.Builder builder) {
        settings = builder.build();
        proxy = FaultProxy.to(eventsDb.jdbcUrl());
        faultyPool = Pools.pool(eventsDb, proxy.jdbcUrl(), config -> config.setConnectionTimeout(30_000));
        good = EventSql.builder(goodPool).settings(settings).build();
        good.createStream(TestStreams.of(stream).withPartitions(PARTITIONS));
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
        return Sql.query(
                        goodPool,
                        "SELECT m.name FROM eventsql.consumer_member m JOIN eventsql.consumer USING (consumer_id)"
                                + " JOIN eventsql.stream s USING (stream_id) WHERE s.name = ?",
                        stream)
                .size();
    }

    /** Returns the owner of each partition; partitions without an owner are omitted. */
    private Map<Integer, String> owners() throws SQLException {
        Map<Integer, String> owners = new HashMap<>();
        for (String row : Sql.query(
                goodPool,
                "SELECT p.partition || ' ' || p.member_id FROM eventsql.consumer_partition p"
                        + " JOIN eventsql.consumer USING (consumer_id) JOIN eventsql.stream s USING (stream_id)"
                        + " WHERE p.member_id IS NOT NULL AND s.name = ?",
                stream)) {
            String[] fields = row.split(" ", -1);
            owners.put(Integer.parseInt(fields[0]), fields[1]);
        }
        return owners;
    }

    /** Waits until all partitions are assigned to this number of members. */
    private void awaitAssignedTo(int members) {
        await().atMost(DEADLINE)
                .until(() -> owners().size() == PARTITIONS
                        && Set.copyOf(owners().values()).size() == members);
    }

    @Test
    void close_duringHeartbeat_removesTheMember() throws Exception {
        open();
        Subscription member = faulty.subscribe(spec, event -> {});
        awaitAssignedTo(1);
        proxy.planRequests("heartbeat_v1", number -> number == 1 ? RequestFault.HOLD_REQUEST : null);
        await().atMost(DEADLINE).until(() -> proxy.heldConnections() == 1);
        CompletableFuture<Boolean> closing =
                CompletableFuture.supplyAsync(() -> member.close(Duration.ofSeconds(5)), Thread::startVirtualThread);
        closing.copy().completeOnTimeout(false, 1, TimeUnit.SECONDS).join(); // it may wait for the heartbeat
        proxy.releaseHeld();
        assertThat(closing.join()).isTrue();
        assertThat(faulty.close(Duration.ofSeconds(20))).isTrue(); // running calls have ended
        assertThat(members()).isZero();
        Handled handled = new Handled();
        good.subscribe(spec, handled::add);
        publish(20);
        handled.awaitSize(20);
    }

    @Test
    void takeover_whileHeadsAreRead_isNotMistakenForLostLog() throws Exception {
        open();
        Handled handled = new Handled();
        Subscription former = good.subscribe(spec, handled::add);
        publish(20);
        handled.awaitSize(20);
        String formerId = owners().get(0);
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
        await().atMost(DEADLINE).until(() -> proxy.heldConnections() == 1); // the heads have been read
        awaitAssignedTo(2);
        publish(20);
        Map<Integer, String> owners = owners();
        await().atMost(DEADLINE)
                .until(() -> states().stream()
                        .filter(state -> formerId.equals(owners.get(state.partition())))
                        .allMatch(state -> state.lag() == 0));
        former.close();
        awaitAssignedTo(1);
        proxy.releaseHeld();
        publish(20);
        handled.awaitSize(60);
        assertThat(stopped).isEmpty();
        assertThat(handled.size()).isEqualTo(60);
    }

    @Test
    void takeover_responseLost_memberTakesPartitionsAgainAtOnce() throws Exception {
        open();
        publish(20);
        Handled handled = new Handled();
        proxy.planRequests("parked_key", number -> RequestFault.HOLD_RESPONSE); // before the COMMIT of the takeover
        faulty.subscribe(spec, handled::add);
        await().atMost(DEADLINE).until(() -> proxy.heldConnections() == 1);
        proxy.planRequests(FaultProxy.COMMIT, number -> number == 1 ? RequestFault.CUT_BEFORE_RESPONSE : null);
        proxy.releaseHeld();
        handled.awaitSize(20); // before the lease expires of the partitions it took unknowingly
        assertThat(proxy.requests()).isGreaterThan(1);
        assertThat(handled.size()).isEqualTo(20);
    }

    @Test
    void takeover_transactionHangs_othersTakeThePartitions() throws Exception {
        open(Settings.builder()
                .lease(Duration.ofSeconds(2))
                .heartbeat(Duration.ofMillis(200))
                .networkTimeout(Duration.ofSeconds(2)));
        publish(20);
        proxy.planRequests("parked_key", number -> RequestFault.HOLD_REQUEST);
        Handled byFaulty = new Handled();
        faulty.subscribe(spec, byFaulty::add);
        await().atMost(DEADLINE).until(() -> proxy.heldConnections() == 1); // it has locked the partitions
        proxy.blackhole(); // and cut off from now on
        Handled byGood = new Handled();
        good.subscribe(spec, byGood::add);
        byGood.awaitSize(20);
        assertThat(byFaulty.size()).isZero();
    }

    @Test
    void commit_hangs_leasesAreStillRenewed() throws Exception {
        open(Settings.builder().lease(Duration.ofSeconds(4)).heartbeat(Duration.ofMillis(500)));
        Handled handled = new Handled();
        faulty.subscribe(spec, handled::add);
        awaitAssignedTo(1);
        proxy.planRequests("commit_offsets_v2", number -> number == 1 ? RequestFault.HOLD_REQUEST : null);
        publish(20);
        await().atMost(DEADLINE).until(() -> proxy.heldConnections() == 1);
        good.subscribe(spec, handled::add); // makes the first member release partitions, which needs a commit
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
    void heartbeat_hangs_nextOneRenewsTheLeasesInTime() throws Exception {
        open(Settings.builder().lease(Duration.ofSeconds(6)).heartbeat(Duration.ofSeconds(2)));
        faulty.subscribe(spec, event -> {});
        awaitAssignedTo(1);
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
    void commit_storedAfterTimeout_effectHappensOnce() throws Exception {
        open(Settings.builder() // few heartbeats, whose commits could be held instead
                .networkTimeout(Duration.ofSeconds(1))
                .lease(Duration.ofMinutes(1))
                .heartbeat(Duration.ofSeconds(20)));
        Sql.execute(goodPool, "CREATE TABLE public.effect_of_late_commit (value text)");
        AtomicInteger calls = new AtomicInteger();
        CountDownLatch resume = new CountDownLatch(1);
        faulty.subscribeTransactional(spec, (event, connection) -> {
            try (PreparedStatement insert =
                    connection.prepareStatement("INSERT INTO public.effect_of_late_commit VALUES (?)")) {
                insert.setString(1, event.text());
                insert.executeUpdate();
            }
            if (event.text().equals("first") && calls.incrementAndGet() == 2) {
                resume.await();
                throw new IllegalStateException("needs another attempt");
            }
        });
        awaitAssignedTo(1);
        AtomicBoolean isHeld = new AtomicBoolean();
        proxy.planRequests( // the commit of the handler's transaction, not of a heartbeat before it
                FaultProxy.COMMIT,
                number -> calls.get() == 1 && isHeld.compareAndSet(false, true) ? RequestFault.HOLD_REQUEST : null);
        int partition =
                good.publisher().publish(stream, Event.ofText("key", "first")).partition();
        await().atMost(DEADLINE).until(() -> calls.get() == 2); // the member no longer waits for the response
        proxy.releaseHeld();
        await().atMost(DEADLINE).until(() -> states().get(partition).nextOffset() == 1);
        // The commit of another partition is in doubt, so the member reads all offsets.
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
        resume.countDown();
        await().atMost(DEADLINE).until(() -> states().stream().allMatch(state -> state.lag() == 0));
        good.publisher().publish(stream, Event.ofText("key", "last"));
        await().atMost(DEADLINE).until(() -> states().stream().allMatch(state -> state.lag() == 0));
        assertThat(Sql.query(goodPool, "SELECT value FROM public.effect_of_late_commit"))
                .doesNotHaveDuplicates()
                .contains("first", "last")
                .hasSize(3 + more);
    }

    /** The handler has not failed: neither its event nor its key may be parked, however few attempts it has. */
    @Test
    void commit_hangsAndIsStoredLater_oneAttemptAllowed_nothingIsParked() throws Exception {
        open(Settings.builder()
                .networkTimeout(Duration.ofSeconds(1))
                .lease(Duration.ofMinutes(1))
                .heartbeat(Duration.ofSeconds(20)));
        Sql.execute(goodPool, "CREATE TABLE public.effect_of_hung_commit (value text PRIMARY KEY)");
        AtomicInteger calls = new AtomicInteger();
        ConsumerSpec parking = spec.withFailurePolicy(FailurePolicy.PARK_KEY)
                .withRetry(RetryPolicy.defaults().withMaxAttempts(1));
        faulty.subscribeTransactional(parking, (event, connection) -> {
            calls.incrementAndGet();
            insertEffect(connection, "effect_of_hung_commit", event.text());
        });
        awaitAssignedTo(1);
        AtomicBoolean isHeld = new AtomicBoolean();
        proxy.planRequests(
                FaultProxy.COMMIT,
                number -> calls.get() == 1 && isHeld.compareAndSet(false, true) ? RequestFault.HOLD_REQUEST : null);
        int partition =
                good.publisher().publish(stream, Event.ofText("key", "first")).partition();
        await().atMost(DEADLINE).until(() -> calls.get() >= 2); // the member no longer waits for the response
        proxy.releaseHeld();
        await().atMost(DEADLINE).until(() -> states().get(partition).nextOffset() == 1);
        good.publisher().publish(stream, Event.ofText("key", "second"));
        await().atMost(DEADLINE).until(() -> states().get(partition).nextOffset() == 2);
        assertThat(good.consumer(stream, "c").parkedEvents(10)).isEmpty();
        assertThat(Sql.query(goodPool, "SELECT value FROM public.effect_of_hung_commit ORDER BY 1"))
                .containsExactly("first", "second");
    }

    /** The next attempt fails because of the first one's effect, and says nothing of the offset that was stored with it. */
    @Test
    void commit_storedAndAnswerLost_offsetCannotBeReadAtOnce_theNextEventsAreHandled() throws Exception {
        open(Settings.builder().lease(Duration.ofMinutes(1)).heartbeat(Duration.ofSeconds(20)));
        Sql.execute(goodPool, "CREATE TABLE public.effect_of_lost_answer (value text PRIMARY KEY)");
        AtomicInteger calls = new AtomicInteger();
        faulty.subscribeTransactional(spec, (event, connection) -> {
            if (calls.incrementAndGet() == 1) { // its commit is cut, then two attempts to read the offset
                proxy.planRequests(FaultProxy.COMMIT, number -> {
                    proxy.planRequests(
                            "consumer_offsets_v1", read -> read <= 2 ? RequestFault.CUT_BEFORE_RESPONSE : null);
                    return RequestFault.CUT_BEFORE_RESPONSE;
                });
            }
            insertEffect(connection, "effect_of_lost_answer", event.text());
        });
        awaitAssignedTo(1);
        int partition =
                good.publisher().publish(stream, Event.ofText("key", "first")).partition();
        good.publisher().publish(stream, Event.ofText("key", "second"));
        await().atMost(DEADLINE).until(() -> states().get(partition).nextOffset() == 2);
        assertThat(Sql.query(goodPool, "SELECT value FROM public.effect_of_lost_answer ORDER BY 1"))
                .containsExactly("first", "second");
    }

    private static void insertEffect(Connection connection, String table, String value) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO public." + table + " VALUES (?)")) {
            insert.setString(1, value);
            insert.executeUpdate();
        }
    }

    /** All members of a process share a heartbeat, but not the fate of one whose row is locked. */
    @Test
    void heartbeat_rowOfOneConsumerIsLocked_leasesOfTheOthersAreRenewed() throws Exception {
        open(Settings.builder().lease(Duration.ofSeconds(6)).heartbeat(Duration.ofMillis(750)));
        faulty.subscribe(spec, event -> {});
        awaitAssignedTo(1);
        faulty.subscribe(ConsumerSpec.of(stream, "locked"), event -> {});
        await().atMost(DEADLINE)
                .until(() ->
                        good.consumer(stream, "locked").state().stream().allMatch(state -> state.member() != null));
        try (Connection holder = goodPool.getConnection()) {
            holder.setAutoCommit(false);
            Sql.query(
                    holder,
                    "SELECT p.partition FROM eventsql.consumer_partition p JOIN eventsql.consumer c USING (consumer_id)"
                            + " JOIN eventsql.stream s USING (stream_id) WHERE s.name = ? AND c.name = 'locked'"
                            + " AND p.partition = 0 FOR UPDATE OF p",
                    stream);
            long from = renewedUntilMs();
            AtomicBoolean expired = new AtomicBoolean();
            await().atMost(DEADLINE).until(() -> {
                long until = renewedUntilMs();
                expired.compareAndSet(false, until < databaseClockMs());
                return until > from + 12_000;
            });
            holder.rollback();
            assertThat(expired).isFalse();
        }
    }

    /** Returns when the next lease of this stream's consumer expires. */
    private long renewedUntilMs() throws SQLException {
        return Long.parseLong(Sql.query(
                        goodPool,
                        "SELECT (extract(epoch FROM min(p.expires_at)) * 1000)::bigint FROM eventsql.consumer_partition p"
                                + " JOIN eventsql.consumer c USING (consumer_id) JOIN eventsql.stream s USING (stream_id)"
                                + " WHERE s.name = ? AND c.name = 'c'",
                        stream)
                .getFirst());
    }

    private long databaseClockMs() throws SQLException {
        return Sql.queryLong(goodPool, "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint");
    }
}
