package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.fixture.BlockedRelays;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.load.OutboxLoad;
import io.eventsql.fixture.process.ChildProcess;
import io.eventsql.fixture.process.OutboxProcess;
import java.io.IOException;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Goal: events committed with the application's rows reach the streams exactly once and in the order of each key, although
 * processes are killed (SIGKILL) at any moment: between commit and relay, and anywhere in the relay.
 *
 * <p>Method: Java processes write and relay, with two shards, a standalone outbox and a short lease. At the end the streams
 * are compared with the application's tables.
 *
 * <p>{@code -Deventsql.test.relayKills=N} kills N times instead of 2.
 */
class RelayCrashIT {
    private static final String STREAM = "bills";
    private static final int KILLS = Integer.getInteger("eventsql.test.relayKills", 2);
    private static final int PROCESSES = 2;
    private static final int KILL_INTERVAL_MS_MAX = 1_500;
    /** Of each of eight writers. */
    private static final int PAUSE_MAX_MS = 600;

    @TempDir
    private Path folder;

    private List<HikariDataSource> shards;
    private HikariDataSource standalone;

    @BeforeEach
    void start() throws SQLException {
        shards = List.of(pool(TestCluster.newDatabaseWithTables()), pool(TestCluster.newDatabaseWithTables()));
        standalone = pool(TestCluster.newDatabase());
        for (DataSource written : List.of(shards.getFirst(), standalone)) {
            Sql.execute(written, OutboxLoad.TABLE);
        }
    }

    @AfterEach
    void stop() {
        shards.forEach(HikariDataSource::close);
        standalone.close();
    }

    private static HikariDataSource pool(DataSource database) {
        return Pools.pool(TestCluster.server(), ((PGSimpleDataSource) database).getUrl());
    }

    private EventSql open() {
        EventSql eventSql = EventSql.builder(shards)
                .outbox(standalone)
                .settings(OutboxProcess.settings().build())
                .build();
        eventSql.createStream(TestStreams.of(STREAM).withPartitions(2).withSegmentSize(1_000));
        return eventSql;
    }

    private ChildProcess process(String name, long seed, DataSource... written) throws IOException {
        return new ChildProcess(
                folder,
                OutboxProcess.class,
                List.of(
                        TestCluster.server().username(),
                        TestCluster.server().password(),
                        urls(shards),
                        urls(List.of(standalone)),
                        urls(List.of(written)),
                        STREAM,
                        name,
                        Long.toString(seed),
                        Integer.toString(PAUSE_MAX_MS)));
    }

    private static String urls(List<? extends DataSource> pools) {
        return String.join(
                ",",
                pools.stream()
                        .map(pool -> ((HikariDataSource) pool).getJdbcUrl())
                        .toList());
    }

    @Test
    @Timeout(120)
    void publish_processKilledBeforeRelay_anotherProcessDelivers() throws Exception {
        open().close(); // creates the tables and the stream
        try (BlockedRelays ignored = BlockedRelays.of(standalone)) {
            try (ChildProcess process = process("p", 1, standalone)) {
                process.awaitLine("READY");
                while (Sql.queryLong(standalone, "SELECT count(*) FROM bill") < 10) {
                    TimeUnit.MILLISECONDS.sleep(20);
                }
                process.kill();
            }
            assertThat(Sql.queryLong(standalone, "SELECT count(*) FROM eventsql.outbox"))
                    .as("committed events still in the outbox")
                    .isEqualTo(Sql.queryLong(standalone, "SELECT count(*) FROM bill"));
        }
        try (EventSql another = open()) {
            OutboxLoad.awaitRelayed(another.outbox());
        }
        assertThat(OutboxLoad.verify(STREAM, List.copyOf(shards), List.of(standalone)))
                .isGreaterThanOrEqualTo(10);
    }

    @Test
    void relay_killedAtAnyMoment_storesEveryCommittedEventOnceInKeyOrder() throws Exception {
        Random random = Seeds.random("RelayCrashIT");
        open().close();
        ChildProcess[] processes = new ChildProcess[PROCESSES];
        try {
            for (int i = 0; i < PROCESSES; i++) {
                processes[i] = process("p" + i, random.nextLong(), shards.getFirst(), standalone);
                processes[i].awaitLine("READY");
            }
            for (int kill = 0; kill < KILLS; kill++) {
                TimeUnit.MILLISECONDS.sleep(random.nextInt(KILL_INTERVAL_MS_MAX));
                int victim = random.nextInt(PROCESSES);
                processes[victim].kill();
                processes[victim] = process("p" + (PROCESSES + kill), random.nextLong(), shards.getFirst(), standalone);
                processes[victim].awaitLine("READY");
            }
            for (ChildProcess process : processes) {
                process.finish();
            }
        } finally {
            for (ChildProcess process : processes) {
                if (process != null) {
                    process.close();
                }
            }
        }
        try (EventSql last = open()) {
            // One more event, relayed after all others.
            try (Connection transaction = standalone.getConnection()) {
                transaction.setAutoCommit(false);
                Sql.query(transaction, "INSERT INTO bill VALUES ('last/0') RETURNING name");
                last.outbox().publish(transaction, STREAM, Event.ofText("last", "last/0"));
                transaction.commit();
            }
            OutboxLoad.awaitRelayed(last.outbox());
        }
        int stored = OutboxLoad.verify(STREAM, List.copyOf(shards), List.of(shards.getFirst(), standalone));
        System.out.println(stored + " events after " + KILLS + " kills");
        assertThat(stored).isGreaterThan(KILLS * 10);
    }
}
