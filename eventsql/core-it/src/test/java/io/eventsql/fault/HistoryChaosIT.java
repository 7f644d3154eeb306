package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventSql;
import io.eventsql.Outbox;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.HandlerMode;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.check.Acknowledgement;
import io.eventsql.fixture.check.Effects;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.fixture.check.LossCheck;
import io.eventsql.fixture.check.LossCheck.Loss;
import io.eventsql.fixture.check.LossReports;
import io.eventsql.fixture.load.OutboxLoad;
import io.eventsql.fixture.load.Witness;
import io.eventsql.fixture.process.ConsumerProcess;
import io.eventsql.fixture.process.MemberProcess;
import io.eventsql.fixture.process.PublisherGroup;
import io.eventsql.fixture.server.RestorableServer;
import io.eventsql.fixture.server.RestorableServer.Backup;
import io.eventsql.fixture.server.RestorableServer.Standby;
import java.io.IOException;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Chaos test. Goal: whatever happens to publishers, members and the database, including failovers that lose the end of the
 * log and restores of backups, no acknowledged event is lost but those that the database lost, which are reported; no event
 * is stored twice or out of order; each stored event has exactly one effect; no thread of the library ends; and neither
 * backends nor memory grow. What was published in a transaction is in its stream if, and only if, the rows of that
 * transaction are in their table.
 *
 * <p>Method: publishing processes, member processes of an exactly-once consumer and the database are killed, members are
 * frozen, an asynchronous standby is promoted that lacks the last events, and a base backup is restored to a point in time,
 * in random order, always behind the same address. An instance in this process lives through all of it ({@link Witness}).
 * Before the new history is written, the test reads the offset at which each partition continues. At the end it compares the
 * stored events with the acknowledgements in the publishers' files, the reports of the witness, and the effects ({@link
 * LossCheck}, {@link LossReports}, {@link Effects}).
 *
 * <p>{@code -Deventsql.test.chaosSeconds=N} continues for N seconds, with more publishers and at a higher rate; by default
 * each fault happens once. {@code -Deventsql.test.seed=N} repeats the choices, but not their timing.
 */
@Timeout(value = 3, unit = TimeUnit.HOURS)
class HistoryChaosIT {
    private static final long SECONDS = Long.getLong("eventsql.test.chaosSeconds", 0);
    private static final int PARTITIONS = SECONDS > 0 ? 4 : 2;
    private static final StreamSpec STREAM =
            TestStreams.of("chaos").withPartitions(PARTITIONS).withSegmentSize(2_000);
    /** The stream of the outbox, which goes back in time together with the database. */
    private static final StreamSpec RELAYED =
            TestStreams.of("relayed").withPartitions(1).withSegmentSize(2_000);

    private static final String CONSUMER = "once";
    private static final int PUBLISHERS = SECONDS > 0 ? 2 : 1;
    private static final int MEMBERS = 2;
    private static final int MEMBER_CONNECTIONS = 12;
    private static final int WITNESS_CONNECTIONS = 12;
    private static final int PUBLISHER_CONNECTIONS = 12;
    /** The sums of all pools, and what a killed process leaves for a moment. */
    private static final long BACKENDS_MAX =
            WITNESS_CONNECTIONS + (PUBLISHERS + 1) * PUBLISHER_CONNECTIONS + (MEMBERS + 1) * MEMBER_CONNECTIONS;

    private static final long HEAP_GROWTH_MAX = 32L << 20;
    private static final int PAUSE_MAX_MS = 1_500;
    /** The short run is next to other tests, and its members, which need a transaction for each event, must keep up. */
    private static final int PUBLISH_PAUSE_MAX_MS = SECONDS > 0 ? 500 : 2_000;

    private static final int WITNESS_CALLERS = SECONDS > 0 ? 3 : 2;
    private static final int WITNESS_PAUSE_MAX_MS = SECONDS > 0 ? 100 : 200;
    private static final int OUTBOX_WRITERS = SECONDS > 0 ? 2 : 1;
    private static final int OUTBOX_PAUSE_MAX_MS = 500;

    @TempDir
    private Path folder;

    private final Random random = Seeds.random("HistoryChaosIT");
    private final Map<Fault, Integer> injected = new TreeMap<>();
    private final List<Loss> losses = new ArrayList<>();
    private final List<MemberProcess> members = new ArrayList<>();
    private final List<MemberProcess> formerMembers = new ArrayList<>();
    private int membersStarted;
    private long backendsMax;

    private enum Fault {
        KILL_PUBLISHER,
        KILL_MEMBER,
        FREEZE_MEMBER,
        CRASH_DATABASE,
        RESTART_DATABASE,
        PROMOTE_STANDBY,
        RESTORE_BACKUP
    }

    @Test
    void history_randomFaultsFailoversAndRestores_onlyWhatTheDatabaseLostIsLost() throws Exception {
        HandlerMode mode =
                pick(List.of(HandlerMode.TRANSACTIONAL, HandlerMode.TRANSACTIONAL_BATCH, HandlerMode.BOUNDARY));
        try (RestorableServer server = RestorableServer.start(folder);
                HikariDataSource pool = Pools.pool(server.current());
                Witness witness = new Witness(pool, STREAM, folder, settings());
                PublisherGroup publishers =
                        new PublisherGroup(server.current(), STREAM.name(), folder, random, PUBLISH_PAUSE_MAX_MS)) {
            try {
                Sql.execute(pool, ConsumerProcess.TABLES.toArray(String[]::new));
                Sql.execute(pool, OutboxLoad.TABLE);
                witness.eventSql().createStream(RELAYED);
                publishers.start(PUBLISHERS);
                while (members.size() < MEMBERS) {
                    startMember(server, mode);
                }
                witness.start(WITNESS_CALLERS, random, WITNESS_PAUSE_MAX_MS);
                Outbox outbox = witness.eventSql().outbox();
                OutboxLoad outboxLoad = new OutboxLoad(pool, outbox, RELAYED.name());
                for (int i = 0; i < OUTBOX_WRITERS; i++) {
                    outboxLoad.start("o" + i, random, OUTBOX_PAUSE_MAX_MS);
                }
                injectFaults(server, publishers, witness, mode);
                outboxLoad.stop();
                OutboxLoad.awaitRelayed(outbox);
                finish(pool, publishers, witness, mode);
                assertThat(OutboxLoad.verify(RELAYED.name(), List.of(pool), List.of(pool)))
                        .as("events of the outbox")
                        .isPositive();
            } finally {
                members.forEach(MemberProcess::destroy);
                formerMembers.forEach(MemberProcess::destroy);
            }
        }
    }

    private static Settings.Builder settings() {
        return Settings.builder()
                .publishTimeout(Duration.ofSeconds(60))
                .networkTimeout(Duration.ofSeconds(5))
                .lease(Duration.ofSeconds(4))
                .heartbeat(Duration.ofMillis(500));
    }

    private <T> T pick(List<T> from) {
        return from.get(random.nextInt(from.size()));
    }

    private void startMember(RestorableServer server, HandlerMode mode) throws IOException {
        Map<String, String> options = new TreeMap<>();
        options.put("name", "m" + ++membersStarted);
        options.put("url", server.current().jdbcUrl());
        options.put("user", server.current().username());
        options.put("password", server.current().password());
        options.put("stream", STREAM.name());
        options.put("folder", folder.toString());
        options.put("members", CONSUMER + ":" + mode);
        options.put("connections", Integer.toString(MEMBER_CONNECTIONS));
        options.put("leaseMs", "3000");
        options.put("heartbeatMs", "500");
        members.add(MemberProcess.start(options));
    }

    /** Injects each fault once, in random order, until the time is over. */
    private void injectFaults(RestorableServer server, PublisherGroup publishers, Witness witness, HandlerMode mode)
            throws Exception {
        witness.awaitProgress();
        witness.awaitProgress();
        long started = System.nanoTime();
        List<String> threads = threads();
        long heap = usedHeap();
        long backends = backends(server);
        do {
            List<Fault> round = new ArrayList<>(Arrays.asList(Fault.values()));
            Collections.shuffle(round, random);
            for (Fault fault : round) {
                TimeUnit.MILLISECONDS.sleep(random.nextInt(PAUSE_MAX_MS));
                inject(fault, server, publishers, witness, mode);
                injected.merge(fault, 1, Integer::sum);
                witness.awaitProgress();
                backendsMax = Math.max(backendsMax, backends(server));
            }
            System.out.println("HistoryChaosIT after " + TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - started)
                    + " s: " + injected);
        } while (System.nanoTime() - started < TimeUnit.SECONDS.toNanos(SECONDS));

        assertThat(EventSql.threadFailures()).isEmpty();
        assertThat(threads()).as("threads of the library").isEqualTo(threads);
        assertThat(backendsMax).as("backends").isLessThanOrEqualTo(BACKENDS_MAX);
        long heapEnd = usedHeap();
        System.out.println("HistoryChaosIT: backends " + backends + " at the beginning, " + backends(server)
                + " at the end, " + backendsMax + " at most; heap " + (heap >> 20) + " MB, then " + (heapEnd >> 20)
                + " MB; " + threads.size() + " threads of the library before and after");
        assertThat(heapEnd - heap).as("growth of the heap").isLessThan(HEAP_GROWTH_MAX);
    }

    private void inject(
            Fault fault, RestorableServer server, PublisherGroup publishers, Witness witness, HandlerMode mode)
            throws Exception {
        switch (fault) {
            case KILL_PUBLISHER -> publishers.replaceOne(random.nextInt(PUBLISHERS));
            case KILL_MEMBER -> {
                MemberProcess victim = members.remove(random.nextInt(members.size()));
                victim.kill();
                formerMembers.add(victim);
                startMember(server, mode);
            }
            case FREEZE_MEMBER -> {
                MemberProcess victim = pick(members);
                victim.freeze();
                TimeUnit.MILLISECONDS.sleep(random.nextInt(5_000)); // its lease may expire
                victim.thaw();
            }
            case CRASH_DATABASE -> {
                server.current().crash();
                server.current().restart();
            }
            case RESTART_DATABASE -> server.current().restart();
            case PROMOTE_STANDBY -> promote(server, witness);
            case RESTORE_BACKUP -> restore(server, witness);
        }
    }

    private void promote(RestorableServer server, Witness witness) throws Exception {
        Backup backup = server.backUp();
        Standby standby = server.startStandby(backup);
        server.remove(backup);
        TimeUnit.MILLISECONDS.sleep(random.nextInt(PAUSE_MAX_MS));
        standby.disconnect();
        List<Long> kept = heads(standby.server().adminDataSource());
        TimeUnit.MILLISECONDS.sleep(random.nextInt(PAUSE_MAX_MS)); // what is written now is lost
        long crash = System.nanoTime();
        long[] nanos = new long[1];
        server.failOver(standby, () -> nanos[0] = System.nanoTime());
        recordLoss(new Loss(crash, nanos[0], kept), witness);
    }

    private void restore(RestorableServer server, Witness witness) throws Exception {
        Backup backup = server.backUp();
        TimeUnit.MILLISECONDS.sleep(random.nextInt(PAUSE_MAX_MS));
        String point = server.newRestorePoint();
        TimeUnit.MILLISECONDS.sleep(random.nextInt(PAUSE_MAX_MS)); // what is written now is lost
        long crash = System.nanoTime();
        List<Long> kept = new ArrayList<>();
        long[] nanos = new long[1];
        server.restore(backup, point, () -> {
            kept.addAll(heads(server.current().adminDataSource()));
            nanos[0] = System.nanoTime();
        });
        server.remove(backup);
        recordLoss(new Loss(crash, nanos[0], kept), witness);
    }

    private void recordLoss(Loss loss, Witness witness) {
        losses.add(loss);
        witness.awaitProgress();
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() ->
                        witness.reports().verify(losses.size() - 1, losses, witness.acknowledged(), witness.handled()));
    }

    private static List<Long> heads(DataSource database) {
        try {
            return Sql.query(
                            database,
                            "SELECT next_offset FROM eventsql.partition_head WHERE stream = ? ORDER BY partition",
                            STREAM.name())
                    .stream()
                    .map(Long::valueOf)
                    .toList();
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    private void finish(HikariDataSource pool, PublisherGroup publishers, Witness witness, HandlerMode mode)
            throws Exception {
        publishers.finish();
        witness.stop();
        witness.awaitHandled(CONSUMER);
        witness.awaitHandled(Witness.CONSUMER);
        for (MemberProcess member : members) {
            assertThat(member.lines("STOPPED")).isEmpty();
            member.close();
            assertThat(member.lines("FAILING")).containsExactly("FAILING []");
        }
        List<Ledger.Stored> stored = Ledger.read(STREAM.name(), List.of(pool));
        List<Acknowledgement> ofWitness = witness.acknowledged();
        List<Acknowledgement> acknowledged = new ArrayList<>(publishers.acknowledged());
        acknowledged.addAll(ofWitness);
        int lost = LossCheck.verify(stored, acknowledged, losses);
        List<Acknowledgement> handled = witness.handled();
        for (int number = 0; number < losses.size(); number++) {
            witness.reports().verify(number, losses, ofWitness, handled);
        }
        LossReports.verifyHandled(stored, handled);
        Effects effects = Effects.read(pool, CONSUMER);
        effects.verify(stored);
        System.out.println("HistoryChaosIT: " + mode + ", injected " + injected + "; " + acknowledged.size()
                + " events acknowledged, " + lost + " of them lost by " + losses.size()
                + " failovers and restores, all others stored; " + stored.size()
                + " stored, none twice or out of order, " + effects.rows().size() + " effects; the witness handled "
                + handled.size() + " times, and reported "
                + witness.reports().published().size() + " ranges of its publisher and "
                + witness.reports().consumed().size() + " of its member");
    }

    /** Returns the names of the threads that live as long as an instance. */
    private static List<String> threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .map(Thread::getName)
                .filter(name -> name.startsWith("eventsql-")
                        && !name.startsWith("eventsql-background-")
                        && !name.startsWith("eventsql-relay-listen-"))
                .sorted()
                .toList();
    }

    private static long usedHeap() throws InterruptedException {
        for (int i = 0; i < 3; i++) {
            System.gc();
            TimeUnit.MILLISECONDS.sleep(100);
        }
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }

    private static long backends(RestorableServer server) throws SQLException {
        return Sql.queryLong(
                server.current().adminDataSource(),
                "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND usename = '"
                        + server.current().username() + "'");
    }
}
