package io.eventsql.fault;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.StreamInUse;
import io.eventsql.fixture.TablesTemplate;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.fixture.process.ChildProcess;
import io.eventsql.fixture.process.MoveProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Chaos test. Goal: shards join and leave again while a stream is used, and the stream grows in between. Whatever is killed, no
 * acknowledged event is lost, none is stored twice, and every consumer handles the events of each key in order: one with members in
 * other processes, a slow one, and one that replays.
 *
 * <p>Method: publishers, members and the moving process are child processes that get SIGKILL at seeded moments, and are replaced; so
 * does the server of the databases, which is restarted. A publisher that is not killed measures the longest call. Two shards become
 * three, then the second one leaves. {@code -Deventsql.test.kills=false} kills nothing.
 *
 * <p>{@code -Deventsql.test.chaosSeconds=N} runs for N seconds, at a higher rate: from three shards to five, to four, and to any
 * others; {@code -Deventsql.test.seed=N} repeats the choices, but not their timing. {@code -Deventsql.test.moveRuns=N
 * -Deventsql.test.rate=R} is another load: N runs, in each of which a stream moves once from three shards to five, grows from 10
 * partitions on each to 20, and moves once to four, at R events with keys per second; every other run kills.
 */
class MoveChaosIT {
    private static final long SECONDS = Long.getLong("eventsql.test.chaosSeconds", 0);
    private static final String STREAM = "moving";
    private static final int RUNS = Integer.getInteger("eventsql.test.moveRuns", 1);
    private static final int EVENTS_PER_SECOND = Integer.getInteger("eventsql.test.rate", 0);
    private static final boolean SHORT_RUN = SECONDS == 0 && EVENTS_PER_SECOND == 0;

    private static final int FIRST_SHARDS = SHORT_RUN ? 2 : 3;
    private static final List<Integer> ALL_SHARDS = SHORT_RUN ? List.of(0, 1, 2) : List.of(0, 1, 2, 3, 4);
    private static final List<Integer> SHARDS_WITHOUT_ONE = SHORT_RUN ? List.of(0, 2) : List.of(0, 1, 2, 4);
    private static final int SHARDS = ALL_SHARDS.size();

    private static final int MEMBERS = SECONDS > 0 ? 2 : 1;
    private static final int PUBLISHERS = SECONDS > 0 ? 2 : 1;
    /** From one group of events of a publisher to the next. */
    private static final int GROUP_INTERVAL_MS = EVENTS_PER_SECOND > 0 ? 40 : SECONDS > 0 ? 25 : 250;

    private static final int GROUP_EVENTS =
            EVENTS_PER_SECOND > 0 ? EVENTS_PER_SECOND * GROUP_INTERVAL_MS / 1_000 / PUBLISHERS : 20;
    private static final int PARTITIONS = EVENTS_PER_SECOND > 0 ? 10 : 2;
    private static final int PARTITIONS_AFTERWARDS = 20;
    private static final int PARTITIONS_MAX = 40;
    private static final int SEGMENT_SIZE = EVENTS_PER_SECOND > 0 ? 10_000 : SECONDS > 0 ? 1_000 : 200;
    /** About as long as a move takes. */
    private static final int MOVE_MS = 1_000;

    @TempDir
    private Path folder;

    private final List<ChildProcess> publishers = new ArrayList<>();
    private final List<ChildProcess> members = new ArrayList<>();
    private final List<Path> acknowledgements = new ArrayList<>();
    private ChildProcess mover;
    private boolean moverIsReady;
    private EmbeddedEventsDb database;
    private String urls;
    private boolean kills;

    static List<Boolean> runs() {
        return StreamInUse.runs(RUNS);
    }

    @ParameterizedTest(name = "kills: {0}")
    @MethodSource("runs")
    void move_randomKills_nothingIsLostRepeatedOrReordered(boolean withKills) throws Exception {
        kills = withKills;
        Random random = Seeds.random("MoveChaosIT");
        Settings settings = Settings.builder()
                .publishTimeout(Duration.ofMinutes(2))
                .networkTimeout(Duration.ofSeconds(5))
                .lease(Duration.ofSeconds(2))
                .heartbeat(Duration.ofMillis(400))
                .build();
        List<HikariDataSource> pools = new ArrayList<>();
        try (EmbeddedEventsDb started = EmbeddedEventsDb.builder().start()) {
            database = started;
            List<String> all = new ArrayList<>();
            for (int i = 0; i < SHARDS; i++) {
                TablesTemplate.copy(database, "shard" + i);
                String url = database.jdbcUrl("shard" + i);
                all.add(url);
                pools.add(Pools.pool(url, database.username(), database.password(), config -> {
                    Pools.reconnecting(config);
                    config.setMaximumPoolSize(12);
                }));
            }
            urls = String.join(" ", all);
            EventSql.builder(pools.subList(0, FIRST_SHARDS)).build().close();
            try (EventSql eventSql =
                    EventSql.builder(pools).addShards().settings(settings).build()) {
                eventSql.createStream(
                        TestStreams.of(STREAM).withPartitions(PARTITIONS).withSegmentSize(SEGMENT_SIZE));
                run(random, eventSql, pools);
            }
        } finally {
            publishers.forEach(ChildProcess::close);
            members.forEach(ChildProcess::close);
            if (mover != null) {
                mover.close();
            }
            pools.forEach(HikariDataSource::close);
        }
    }

    private void run(Random random, EventSql eventSql, List<? extends DataSource> pools) throws Exception {
        try (StreamInUse use =
                new StreamInUse("MoveChaosIT", eventSql, STREAM, random, kills, folder, database, urls)) {
            startMover();
            for (int i = 0; i < MEMBERS; i++) {
                startMember();
            }
            for (int i = 0; i < PUBLISHERS; i++) {
                startPublisher();
            }
            for (ChildProcess publisher : publishers) {
                publisher.awaitLine("READY");
            }
            use.startPublishing();
            if (EVENTS_PER_SECOND > 0) {
                joinGrowAndLeave(random, use);
            } else {
                moveAndKill(random, use);
            }
            use.stopPublishing(() -> {
                for (ChildProcess publisher : publishers) {
                    publisher.finish();
                }
            });
            check(use, pools);
        }
    }

    private void moveAndKill(Random random, StreamInUse use) throws Exception {
        List<Integer> target = ALL_SHARDS;
        int moves = 0;
        int partitions = PARTITIONS;
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        while (System.nanoTime() - end < 0 || moves < 2) {
            move(random, use, target);
            moves++;
            if (partitions < PARTITIONS_MAX && random.nextInt(2) == 0 || moves == 1) {
                grow(random, use, partitions += 1 + random.nextInt(3));
            }
            target = moves == 1 ? SHARDS_WITHOUT_ONE : choose(random);
            if (kills) {
                killSomething(random, use);
            }
            use.replaySometimes();
        }
        System.out.println("MoveChaosIT: " + moves + " moves, and growth to " + partitions + " partitions");
    }

    /** Has two shards join, the stream grow, and one shard leave, each after a quarter of the time. */
    private void joinGrowAndLeave(Random random, StreamInUse use) throws Exception {
        disturb(random, use);
        move(random, use, ALL_SHARDS);
        disturb(random, use);
        grow(random, use, PARTITIONS_AFTERWARDS);
        disturb(random, use);
        move(random, use, SHARDS_WITHOUT_ONE);
        disturb(random, use);
    }

    /** Kills and replays for a quarter of the time. */
    private void disturb(Random random, StreamInUse use) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS) / 4;
        while (System.nanoTime() - end < 0) {
            if (kills) {
                killSomething(random, use);
            }
            TimeUnit.MILLISECONDS.sleep(random.nextInt(500));
            use.replaySometimes();
        }
    }

    private static List<Integer> choose(Random random) {
        List<Integer> chosen = IntStream.range(0, SHARDS)
                .filter(shard -> random.nextInt(4) > 0)
                .boxed()
                .toList();
        return chosen.isEmpty() ? List.of(2) : chosen;
    }

    private ChildProcess start(String... role) throws IOException {
        List<String> arguments = new ArrayList<>(List.of(urls, database.username(), database.password(), STREAM));
        arguments.addAll(List.of(role));
        return new ChildProcess(folder, MoveProcess.class, arguments);
    }

    private void startPublisher() throws IOException {
        Path file = folder.resolve("acknowledged-" + acknowledgements.size());
        publishers.add(start(
                "publish",
                "p" + acknowledgements.size(),
                file.toString(),
                Integer.toString(GROUP_EVENTS),
                Integer.toString(GROUP_INTERVAL_MS)));
        acknowledgements.add(file);
    }

    private void startMember() throws IOException {
        members.add(start("consume", "plain", folder.resolve("plain").toString()));
    }

    /** Starts a moving process, which is ready when it is needed. */
    private void startMover() throws IOException {
        mover = start("move");
        moverIsReady = false;
    }

    private void move(Random random, StreamInUse use, List<Integer> target) throws Exception {
        change(random, use, target.stream().map(String::valueOf).collect(Collectors.joining(",")));
    }

    private void grow(Random random, StreamInUse use, int partitions) throws Exception {
        change(random, use, "grow " + partitions);
    }

    /** Has a process do what a line says; if it is killed, another one completes that. */
    private void change(Random random, StreamInUse use, String line) throws Exception {
        while (kills && random.nextInt(2) == 0) {
            sendToMover(line);
            TimeUnit.MILLISECONDS.sleep(random.nextInt(MOVE_MS));
            mover.kill();
            startMover();
            use.count("mover");
        }
        sendToMover(line);
        mover.awaitLine("MOVED");
    }

    private void sendToMover(String line) throws IOException {
        if (!moverIsReady) {
            mover.awaitLine("READY");
            moverIsReady = true;
        }
        mover.send(line);
    }

    private void killSomething(Random random, StreamInUse use) throws Exception {
        use.killSomething(
                database,
                () -> {
                    publishers.remove(random.nextInt(publishers.size())).kill();
                    startPublisher();
                },
                () -> {
                    members.remove(random.nextInt(members.size())).kill();
                    startMember();
                });
    }

    private void check(StreamInUse use, List<? extends DataSource> pools) throws Exception {
        List<Ledger.Stored> stored = Ledger.read(STREAM, List.copyOf(pools));
        use.print(stored, "between " + SHARDS + " shards");
        List<String> acknowledged = new ArrayList<>();
        for (Path file : acknowledgements) {
            String text = Files.exists(file) ? Files.readString(file) : ""; // killed before it had published
            acknowledged.addAll(
                    text.substring(0, text.lastIndexOf('\n') + 1).lines().toList());
        }
        use.assertStored(stored, acknowledged);
        use.awaitHandled("plain");
        for (ChildProcess member : members) {
            member.finish();
        }
        List<String> plain = Files.readString(folder.resolve("plain"))
                .lines()
                .distinct()
                .map(line -> line.substring(0, line.indexOf(' ')))
                .toList();
        StreamInUse.assertHandledOnce(plain, Ledger.values(stored), "handled by members in other processes");
        use.assertHandled(stored);
    }
}
