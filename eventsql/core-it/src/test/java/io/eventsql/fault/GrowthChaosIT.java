package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.HandlerMode;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.StreamInUse;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.check.HandledRecords;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.fixture.process.ChildProcess;
import io.eventsql.fixture.process.MemberProcess;
import io.eventsql.fixture.process.MoveProcess;
import io.eventsql.fixture.process.PublisherGroup;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Chaos test. Goal: a stream grows again and again while it is used. Whatever is killed, no acknowledged event is lost,
 * none is stored twice, and every consumer handles the events of each key in order: one with members in other processes, a slow
 * one, and one that replays.
 *
 * <p>Method: publishers, members and the growing process are child processes that get SIGKILL at seeded moments, and are
 * replaced; so does the database, which is restarted. A publisher that is not killed measures the longest call. {@code
 * -Deventsql.test.kills=false} kills nothing.
 *
 * <p>{@code -Deventsql.test.chaosSeconds=N} runs for N seconds instead of three growths, with more processes and at a higher
 * rate; {@code -Deventsql.test.seed=N} repeats the choices, but not their timing. {@code -Deventsql.test.growthRuns=N
 * -Deventsql.test.rate=R} is another load: N runs, in each of which a stream of 10 partitions grows once, to 20, at R events
 * with keys per second; every other run kills.
 */
class GrowthChaosIT {
    private static final long SECONDS = Long.getLong("eventsql.test.chaosSeconds", 0);
    private static final boolean LONG_RUN = SECONDS > 0;
    private static final int GROWTHS_MIN = 3;
    private static final int RUNS = Integer.getInteger("eventsql.test.growthRuns", 1);
    private static final int EVENTS_PER_SECOND = Integer.getInteger("eventsql.test.rate", 0);
    private static final int PUBLISHERS = LONG_RUN ? 2 : 1;
    private static final String STREAM = "growing";
    private static final int PARTITIONS = EVENTS_PER_SECOND > 0 ? 10 : 3;
    private static final int PARTITIONS_AFTERWARDS = 20;
    private static final int PARTITIONS_MAX = 200;
    private static final int MEMBERS = LONG_RUN ? 2 : 1;
    private static final int PAUSE_MAX_MS = LONG_RUN ? 4_000 : 2_000;
    private static final int PUBLISH_PAUSE_MAX_MS = LONG_RUN ? 250 : 1_000;
    private static final int SEGMENT_SIZE = EVENTS_PER_SECOND > 0 ? 10_000 : LONG_RUN ? 1_000 : 200;

    @TempDir
    private Path folder;

    private final List<MemberProcess> members = new ArrayList<>();
    private ChildProcess grower;
    private boolean growerIsReady;
    private boolean kills;
    private int startedMembers;

    static List<Boolean> runs() {
        return StreamInUse.runs(RUNS);
    }

    @ParameterizedTest(name = "kills: {0}")
    @MethodSource("runs")
    void grow_randomKills_nothingIsLostRepeatedOrReordered(boolean withKills) throws Exception {
        kills = withKills;
        Random random = Seeds.random("GrowthChaosIT");
        Settings settings = Settings.builder()
                .publishTimeout(Duration.ofMinutes(2))
                .networkTimeout(Duration.ofSeconds(5))
                .build();
        try (EmbeddedEventsDb database = EmbeddedEventsDb.builder().start();
                HikariDataSource pool = Pools.pool(database, database.jdbcUrl(), Pools::reconnecting);
                EventSql eventSql = EventSql.builder(pool).settings(settings).build();
                PublisherGroup publishers = new PublisherGroup(
                        database, STREAM, folder, random, PUBLISH_PAUSE_MAX_MS, EVENTS_PER_SECOND / PUBLISHERS)) {
            eventSql.createStream(
                    TestStreams.of(STREAM).withPartitions(PARTITIONS).withSegmentSize(SEGMENT_SIZE));
            try (StreamInUse use = new StreamInUse(
                    "GrowthChaosIT", eventSql, STREAM, random, kills, folder, database, database.jdbcUrl())) {
                startGrower(database);
                while (members.size() < MEMBERS) {
                    startMember(database);
                }
                publishers.start(PUBLISHERS);
                use.startPublishing();
                int partitions = EVENTS_PER_SECOND > 0
                        ? growOnce(random, database, use, publishers)
                        : growAndKill(random, database, use, publishers);
                awaitNewPartitionUsed(pool);
                use.stopPublishing(publishers::finish);
                check(use, pool, publishers, partitions);
            } finally {
                if (grower != null) {
                    grower.close();
                }
            }
        }
    }

    /** New partitions get the next event of some key. */
    private static void awaitNewPartitionUsed(DataSource database) {
        await().atMost(Duration.ofSeconds(120))
                .ignoreExceptions()
                .until(() -> Sql.queryLong(
                                database,
                                "SELECT count(*) FROM eventsql.events_" + STREAM + " WHERE partition >= " + PARTITIONS)
                        > 0);
    }

    /** Grows the stream step by step, each as often as the growing process is killed. Returns its last number of partitions. */
    private int growAndKill(Random random, EmbeddedEventsDb database, StreamInUse use, PublisherGroup publishers)
            throws Exception {
        int partitions = PARTITIONS;
        int growths = 0;
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        while (System.nanoTime() - end < 0 || growths < GROWTHS_MIN) {
            partitions = Math.min(PARTITIONS_MAX, partitions + 1 + random.nextInt(4));
            while (!grow(random, database, partitions)) {
                use.count("grower");
            }
            growths++;
            disturb(random, database, use, publishers);
            TimeUnit.MILLISECONDS.sleep(random.nextInt(PAUSE_MAX_MS));
        }
        System.out.println("GrowthChaosIT: " + growths + " growths to " + partitions + " partitions");
        return partitions;
    }

    /** Grows the stream after a quarter of the time, to its last number of partitions, which is returned. */
    private int growOnce(Random random, EmbeddedEventsDb database, StreamInUse use, PublisherGroup publishers)
            throws Exception {
        long beganAt = System.nanoTime();
        long end = beganAt + TimeUnit.SECONDS.toNanos(SECONDS);
        while (System.nanoTime() - beganAt < (end - beganAt) / 4) {
            disturb(random, database, use, publishers);
        }
        while (!grow(random, database, PARTITIONS_AFTERWARDS)) {
            use.count("grower");
            disturb(random, database, use, publishers);
        }
        while (System.nanoTime() - end < 0) {
            disturb(random, database, use, publishers);
        }
        return PARTITIONS_AFTERWARDS;
    }

    private void disturb(Random random, EmbeddedEventsDb database, StreamInUse use, PublisherGroup publishers)
            throws Exception {
        if (kills) {
            use.killSomething(database, () -> publishers.replaceOne(random.nextInt(PUBLISHERS)), () -> {
                members.remove(random.nextInt(members.size())).kill();
                startMember(database);
            });
        } else {
            TimeUnit.MILLISECONDS.sleep(random.nextInt(500));
        }
        use.replaySometimes();
    }

    /** Starts a growing process, which is ready when it is needed. */
    private void startGrower(EmbeddedEventsDb database) throws IOException {
        grower = new ChildProcess(
                folder,
                MoveProcess.class,
                List.of(database.jdbcUrl(), database.username(), database.password(), STREAM, "move"));
        growerIsReady = false;
    }

    /** Has the growing process grow the stream; returns {@code false} if it was killed, and replaced. */
    private boolean grow(Random random, EmbeddedEventsDb database, int partitions) throws Exception {
        if (!growerIsReady) {
            grower.awaitLine("READY");
            growerIsReady = true;
        }
        grower.send("grow " + partitions);
        if (kills && random.nextInt(3) == 0) {
            TimeUnit.MILLISECONDS.sleep(random.nextInt(150));
            grower.kill();
            startGrower(database);
            return false;
        }
        grower.awaitLine("MOVED");
        return true;
    }

    private void startMember(EmbeddedEventsDb database) throws IOException {
        members.add(MemberProcess.start(Map.of(
                "url",
                database.jdbcUrl(),
                "user",
                database.username(),
                "password",
                database.password(),
                "stream",
                STREAM,
                "folder",
                folder.toString(),
                "members",
                "plain:" + HandlerMode.SINGLE,
                "leaseMs",
                "2000",
                "heartbeatMs",
                "400",
                "name",
                "m" + ++startedMembers)));
    }

    private void check(StreamInUse use, HikariDataSource pool, PublisherGroup publishers, int partitions)
            throws Exception {
        List<Ledger.Stored> stored = Ledger.read(STREAM, List.of(pool));
        use.print(stored, "from " + PARTITIONS + " to " + partitions + " partitions");
        Ledger.assertGapless(stored);
        StreamInUse.assertInOrder(stored.stream().map(Ledger.Stored::value).toList(), "stored");
        use.assertStored(
                stored,
                publishers.acknowledged().stream()
                        .map(one -> StreamInUse.line(one.value(), one.shard(), one.partition(), one.offset()))
                        .toList());
        assertThat(stored.stream().mapToInt(Ledger.Stored::partition).max().orElseThrow())
                .as("new partitions are used")
                .isBetween(PARTITIONS, partitions - 1);
        use.awaitHandled("plain");
        for (MemberProcess member : members) {
            member.close();
        }
        HandledRecords.read(folder.resolve("plain")).verifyEveryKey(stored);
        use.assertHandled(stored);
    }
}
