package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
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
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
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
    private static final Duration DEADLINE = Duration.ofSeconds(90);
    private static final AtomicInteger STREAMS = new AtomicInteger();

    private static EventsDb eventsDb;

    private final String stream = "faults" + STREAMS.incrementAndGet();
    private final ConsumerSpec spec = ConsumerSpec.of(stream, "c");
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

    private void open(Settings.Builder settings) {
        closeAll();
        proxy = FaultProxy.to(eventsDb.jdbcUrl());
        goodPool = Pools.pool(eventsDb);
        faultyPool = Pools.pool(eventsDb, proxy.jdbcUrl(), config -> config.setConnectionTimeout(30_000));
        good = EventSql.builder(goodPool).settings(settings.build()).build();
        good.createStream(StreamSpec.of(stream).withPartitions(PARTITIONS));
        faulty = EventSql.builder(faultyPool).settings(settings.build()).build();
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

    private void awaitHeld() {
        await().atMost(DEADLINE)
                .until(() ->
                        states().size() == PARTITIONS && states().stream().allMatch(state -> state.member() != null));
    }

    @Test
    void close_whileItsHeartbeatIsUnderWay_theMemberCountsNoMore() throws Exception {
        Subscription member = faulty.subscribe(spec, event -> {});
        awaitHeld();
        proxy.planRequests("beat_v1", number -> number == 1 ? RequestFault.HOLD_REQUEST : null);
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
}
