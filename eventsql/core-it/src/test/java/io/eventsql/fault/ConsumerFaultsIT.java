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
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: members recover without intervention when their connections break at any statement and when the database crashes;
 * no event is lost, and effects of exactly-once handlers happen once. Such a failure does not count as an attempt of the
 * handler, so that no event is parked because of it.
 *
 * <p>Method: two processes, each with a member of a consumer with each kind of handler, behind a proxy that cuts all
 * connections at seeded moments, or cuts COMMITs before and after their execution; and a server whose processes all get
 * SIGKILL and that is restarted on the same data.
 *
 * <p>{@code -Deventsql.test.cuts=N} cuts all connections N times instead of 5.
 */
@Timeout(400)
class ConsumerFaultsIT {
    private static final int PARTITIONS = 3;
    /** From one event of a partition to the next. */
    private static final long TICK_MS = 120;

    private static final int CUTS = Integer.getInteger("eventsql.test.cuts", 5);
    private static final int CRASHES = 3;

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

    private ConsumerGroup group(Stream<HandlerMode> modes) throws Exception {
        StreamSpec stream = TestStreams.of(TestStreams.newName()).withPartitions(PARTITIONS);
        Map<String, HandlerMode> consumers =
                modes.collect(Collectors.toMap(mode -> mode.name().toLowerCase(Locale.ROOT), mode -> mode));
        return new ConsumerGroup(eventsDb, folder, stream, consumers, TICK_MS)
                .with("leaseMs", 3_000)
                .with("heartbeatMs", 500);
    }

    private static void awaitMore(ConsumerGroup group, long events) {
        long before = group.load().published();
        group.awaitThat("more events are published", () -> group.load().published() > before + events);
    }

    @Test
    void connectionsCut_atAnyMoment_membersRecover() throws Exception {
        Random random = Seeds.random("ConsumerFaultsIT cut");
        try (FaultProxy proxy = FaultProxy.to(eventsDb.jdbcUrl());
                ConsumerGroup group = group(HandlerMode.tested()).with("url", proxy.jdbcUrl())) {
            group.start("a");
            group.start("b");
            group.awaitFair(2);
            for (int cut = 0; cut < CUTS; cut++) {
                awaitMore(group, 10 + random.nextInt(20));
                proxy.cut();
            }
            for (FaultProxy.RequestFault fault : new FaultProxy.RequestFault[] {
                FaultProxy.RequestFault.CUT_BEFORE_REQUEST,
                FaultProxy.RequestFault.CUT_AFTER_REQUEST,
                FaultProxy.RequestFault.CUT_BEFORE_RESPONSE
            }) {
                proxy.planRequests(FaultProxy.COMMIT, number -> number % 7 == 0 ? fault : null);
                awaitMore(group, 60);
            }
            proxy.heal();
            group.awaitFair(2);
            group.finish();
            assertThat(group.printed("STOPPED")).isEmpty();
        }
    }

    /** With a single attempt, so that a failure that counts as one stops the partition. */
    @Test
    void databaseCrash_oneAttemptAllowed_countsAsNoAttemptAndEffectsHappenOnce() throws Exception {
        Random random = Seeds.random("ConsumerFaultsIT crash");
        try (ConsumerGroup group = group(HandlerMode.testedTransactional()).with("maxAttempts", 1)) {
            group.start("a");
            group.start("b");
            group.awaitFair(2);
            for (int crash = 0; crash < CRASHES; crash++) {
                awaitMore(group, 30);
                TimeUnit.MILLISECONDS.sleep(random.nextInt(300)); // a random moment
                eventsDb.crash();
                TimeUnit.MILLISECONDS.sleep(random.nextInt(1_000));
                eventsDb.restart();
            }
            awaitMore(group, 30);
            group.awaitFair(2);
            group.finish();
            assertThat(group.printed("STOPPED")).isEmpty();
        }
    }
}
