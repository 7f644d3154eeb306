package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.StreamSpec;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.HandlerMode;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.process.ConsumerGroup;
import io.eventsql.fixture.proxy.FaultProxy;
import java.nio.file.Path;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Goal: members recover without intervention when their connections break at any statement and when the database crashes;
 * no event is lost, and effects of exactly-once handlers happen once. Such a failure does not count as an attempt of the
 * handler, so that no event is parked because of it.
 *
 * <p>Method: two member processes behind a proxy that cuts all connections at seeded moments, or cuts COMMITs before and
 * after their execution; and a server whose processes all get SIGKILL and that is restarted on the same data.
 *
 * <p>{@code -Deventsql.test.cuts=N} cuts all connections N times instead of 6.
 */
@Timeout(400)
class ConsumerFaultsIT {
    private static final int PARTITIONS = 4;
    /** From one event of a partition to the next. */
    private static final long TICK_MS = 40;

    private static final int CUTS = Integer.getInteger("eventsql.test.cuts", 6);

    private static final AtomicInteger STREAMS = new AtomicInteger();

    private static EmbeddedEventsDb eventsDb;

    @TempDir
    private Path folder;

    @BeforeAll
    static void startServer() {
        eventsDb = EmbeddedEventsDb.builder().start();
    }

    @AfterAll
    static void stopServer() {
        eventsDb.close();
    }

    private ConsumerGroup group(HandlerMode mode) throws Exception {
        StreamSpec stream = TestStreams.of("cuts" + STREAMS.incrementAndGet()).withPartitions(PARTITIONS);
        return new ConsumerGroup(eventsDb, folder, stream, Map.of("c", mode), TICK_MS)
                .with("leaseMs", 3_000)
                .with("heartbeatMs", 500);
    }

    private static void awaitMore(ConsumerGroup group, long events) {
        long before = group.load().published();
        group.awaitThat("more events are published", () -> group.load().published() > before + events);
    }

    @ParameterizedTest
    @MethodSource("io.eventsql.fixture.HandlerMode#tested")
    void connectionsCut_atAnyMoment_membersRecover(HandlerMode mode) throws Exception {
        Random random = Seeds.random("ConsumerFaultsIT cut " + mode);
        try (FaultProxy proxy = FaultProxy.to(eventsDb.jdbcUrl());
                ConsumerGroup group = group(mode).with("url", proxy.jdbcUrl())) {
            group.start("a");
            group.start("b");
            group.awaitFair(2);
            for (int cut = 0; cut < CUTS; cut++) {
                awaitMore(group, 10 + random.nextInt(20));
                proxy.cut();
            }
            if (mode.isTransactional()) {
                for (FaultProxy.RequestFault fault : new FaultProxy.RequestFault[] {
                    FaultProxy.RequestFault.CUT_BEFORE_REQUEST,
                    FaultProxy.RequestFault.CUT_AFTER_REQUEST,
                    FaultProxy.RequestFault.CUT_BEFORE_RESPONSE
                }) {
                    proxy.planRequests(FaultProxy.COMMIT, number -> number % 7 == 0 ? fault : null);
                    awaitMore(group, 100);
                }
                proxy.heal();
            }
            group.awaitFair(2);
            group.finish();
            assertThat(group.printed("STOPPED")).isEmpty();
        }
    }

    @Test
    void databaseCrash_exactlyOnceHandlers_effectsHappenOnce() throws Exception {
        Random random = Seeds.random("ConsumerFaultsIT crash");
        try (ConsumerGroup group = group(HandlerMode.TRANSACTIONAL)) {
            group.start("a");
            group.start("b");
            group.awaitFair(2);
            for (int crash = 0; crash < 3; crash++) {
                awaitMore(group, 50);
                TimeUnit.MILLISECONDS.sleep(random.nextInt(300)); // a random moment
                eventsDb.crash();
                TimeUnit.MILLISECONDS.sleep(random.nextInt(500));
                eventsDb.restart();
            }
            awaitMore(group, 50);
            group.awaitFair(2);
            group.finish();
        }
    }

    @ParameterizedTest
    @MethodSource("io.eventsql.fixture.HandlerMode#testedTransactional")
    void databaseCrash_oneAttemptAllowed_countsAsNoAttempt(HandlerMode mode) throws Exception {
        try (ConsumerGroup group = group(mode).with("maxAttempts", 1)) {
            group.start("a");
            group.start("b");
            group.awaitFair(2);
            awaitMore(group, 50);
            eventsDb.crash();
            TimeUnit.MILLISECONDS.sleep(1_000); // longer than the connection timeout
            eventsDb.restart();
            awaitMore(group, 50);
            group.awaitFair(2);
            group.finish();
            assertThat(group.printed("STOPPED")).isEmpty();
        }
    }
}
