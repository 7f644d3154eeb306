package io.eventsql.version;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fixture.PatientOpening;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.SharedServerDatabase;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.fixture.proxy.FaultProxy;
import io.eventsql.fixture.proxy.FaultProxy.RequestFault;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * Goal: of writers that compete for keys every one succeeds, the versions of each key have no gap, and the stored events are
 * those that were acknowledged: whatever happens to connections, also at the commit. Unknown outcomes are resolved by reading.
 *
 * <p>Method: each event says the version that it expects to give its key; a proxy cuts connections at seeded moments.
 *
 * <p>{@code -Deventsql.test.writers=64 -Deventsql.test.seconds=300} is the long form. Prints lines with {@code MEASURED}.
 */
class CompetingWritersIT {
    private static final int WRITERS = Integer.getInteger("eventsql.test.writers", 16);
    private static final long RUN_SECONDS = Long.getLong("eventsql.test.seconds", 1);
    private static final int KEYS = 10;
    /** One append in this number is cut. */
    private static final int CUT_ONE_IN = Integer.getInteger("eventsql.test.cutOneIn", 12);

    private static final int INSTANCES = Integer.getInteger("eventsql.test.instances", 4);
    private static final String APPEND = "eventsql.append_expected_";
    private static EventsDb eventsDb;

    private final List<AutoCloseable> opened = new ArrayList<>();
    private final List<EventSql> instances = new ArrayList<>();

    @BeforeAll
    static void startDatabase() {
        eventsDb = SharedServerDatabase.create();
    }

    @AfterAll
    static void stopDatabase() {
        eventsDb.close();
    }

    @AfterEach
    void close() throws Exception {
        for (AutoCloseable each : opened.reversed()) {
            each.close();
        }
    }

    private void open(String stream, String jdbcUrl, Settings settings) {
        StreamSpec spec = StreamSpec.of(stream)
                .withPartitions(4)
                .withSegmentSize(RUN_SECONDS > 60 ? 100_000 : 500)
                .withKeyVersions();
        for (int i = 0; i < INSTANCES; i++) {
            HikariDataSource pool = Pools.pool(eventsDb, jdbcUrl);
            opened.add(pool);
            EventSql eventSql = PatientOpening.open(EventSql.builder(pool).settings(settings), spec);
            opened.add(() -> eventSql.close(Duration.ofSeconds(5)));
            instances.add(eventSql);
        }
    }

    /** Runs the writers for some time, and longer until there is enough of what the test needs. */
    private CompetingWriters run(String stream, Random random, AutoCloseable faults, Callable<Boolean> isEnough)
            throws Exception {
        CompetingWriters writers = new CompetingWriters(stream, KEYS, WRITERS);
        long startedAt = System.nanoTime();
        writers.start(instances, random);
        faults.close();
        TimeUnit.NANOSECONDS.sleep(startedAt + TimeUnit.SECONDS.toNanos(RUN_SECONDS) - System.nanoTime());
        await().atMost(Duration.ofSeconds(120)).until(isEnough);
        double seconds = (System.nanoTime() - startedAt) / 1e9;
        long successes = writers.successes();
        writers.stop();
        System.out.printf(
                "MEASURED %s: %d writers, %.0f successful publishes/s, %s%n",
                stream, WRITERS, successes / seconds, writers);
        return writers;
    }

    private static List<Ledger.Stored> read(String stream) throws Exception {
        return Ledger.read(stream, List.of(eventsDb.dataSource()));
    }

    @Test
    void publish_competingWriters_versionsHaveNoGap() throws Exception {
        Random random = Seeds.random("CompetingWritersIT.calm");
        open("calm", eventsDb.jdbcUrl(), Settings.builder().build());
        CompetingWriters writers = run("calm", random, () -> {}, () -> true);
        writers.verify(instances.getFirst(), read("calm"));
    }

    @Test
    void publish_connectionsCutAtCommit_versionsHaveNoGapAndOutcomesAreRepeated() throws Exception {
        Random random = Seeds.random("CompetingWritersIT.cut");
        FaultProxy proxy = FaultProxy.to(eventsDb.jdbcUrl());
        opened.add(proxy);
        open(
                "cut",
                proxy.jdbcUrl(),
                Settings.builder()
                        .networkTimeout(Duration.ofSeconds(1))
                        .publishTimeout(Duration.ofSeconds(60))
                        .build());
        AtomicInteger faults = new AtomicInteger();
        CompetingWriters writers = run(
                "cut",
                random,
                () -> proxy.planRequests(APPEND, number -> {
                    if (random.nextInt(CUT_ONE_IN) > 0) {
                        return null;
                    }
                    faults.incrementAndGet();
                    return switch (random.nextInt(5)) {
                        case 0 -> RequestFault.CUT_BEFORE_REQUEST;
                        case 1 -> RequestFault.CUT_AFTER_REQUEST;
                        case 2 -> RequestFault.CUT_WITHIN_RESPONSE;
                        default -> RequestFault.CUT_BEFORE_RESPONSE;
                    };
                }),
                () -> faults.get() > 0);
        proxy.heal();
        System.out.println(faults + " appends cut");
        assertThat(faults.get()).isPositive();
        writers.verify(instances.getFirst(), read("cut"));
    }

    /** Deadlines are shorter than the faults, so that outcomes remain unknown, and late originals arrive. */
    @Test
    void publish_appendsHeldBeyondDeadlines_unknownOutcomesAreResolvedByReading() throws Exception {
        Random random = Seeds.random("CompetingWritersIT.held");
        FaultProxy proxy = FaultProxy.to(eventsDb.jdbcUrl());
        opened.add(proxy);
        open(
                "held",
                proxy.jdbcUrl(),
                Settings.builder()
                        .networkTimeout(Duration.ofMillis(150))
                        .publishTimeout(Duration.ofMillis(250))
                        .build());
        CompetingWriters writers = run(
                "held",
                random,
                () -> proxy.planRequests(APPEND, number -> switch (random.nextInt(25)) {
                    case 0 -> RequestFault.HOLD_REQUEST;
                    case 1 -> RequestFault.HOLD_RESPONSE;
                    default -> null;
                }),
                () -> true);
        proxy.heal();
        await().atMost(Duration.ofSeconds(120)).until(() -> proxy.heldConnections() == 0);
        await().atMost(Duration.ofSeconds(120)).until(() -> {
            try (var connection = eventsDb.adminDataSource().getConnection();
                    var statement = connection.createStatement();
                    var row = statement.executeQuery("SELECT count(*) FROM pg_stat_activity WHERE state = 'active'"
                            + " AND query LIKE '%append_expected_v%' AND pid <> pg_backend_pid()")) {
                row.next();
                return row.getInt(1) == 0;
            }
        });
        writers.verify(instances.getFirst(), read("held"));
    }
}
