package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.StartPosition;
import io.eventsql.Subscription;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.fixture.process.ChildProcess;
import io.eventsql.fixture.process.MoveProcess;
import io.eventsql.internal.schema.Migrator;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.SqlSchema;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Chaos test. Goal: shards join and leave again and again while a stream is used: from three to five, to four, and to any others.
 * Whatever is killed, no acknowledged event is lost, none is stored twice, and every consumer handles the events of each key in
 * order: one with members in other processes, a slow one, and one that replays.
 *
 * <p>Method: publishers, members and the moving process are child processes that get SIGKILL at seeded moments, and are replaced; so
 * does the server of the databases, which is restarted. A publisher of this process measures the longest call. {@code
 * -Deventsql.test.kills=false} kills nothing.
 *
 * <p>{@code -Deventsql.test.chaosSeconds=N} runs for N seconds, at a higher rate, instead of two moves; {@code -Deventsql.test.seed=N} repeats the choices, but
 * not their timing. {@code -Deventsql.test.moveRuns=N -Deventsql.test.rate=R} is another load: N runs, in each of which a stream moves once from
 * three shards to five and once to four, at R events with keys per second; every other run kills.
 */
class MoveChaosIT {
    private static final long SECONDS = Long.getLong("eventsql.test.chaosSeconds", 0);
    private static final String STREAM = "moving";
    private static final int SHARDS = 5;
    private static final int FIRST_SHARDS = 3;
    private static final int RUNS = Integer.getInteger("eventsql.test.moveRuns", 1);
    private static final int EVENTS_PER_SECOND = Integer.getInteger("eventsql.test.rate", 0);

    private static final int MEMBERS = SECONDS > 0 ? 2 : 1;
    private static final int PUBLISHERS = SECONDS > 0 ? 2 : 1;
    /** From one group of events of a publisher to the next. */
    private static final int GROUP_INTERVAL_MS = EVENTS_PER_SECOND > 0 ? 40 : SECONDS > 0 ? 25 : 100;

    private static final int GROUP_EVENTS =
            EVENTS_PER_SECOND > 0 ? EVENTS_PER_SECOND * GROUP_INTERVAL_MS / 1_000 / PUBLISHERS : 20;
    private static final int PARTITIONS = EVENTS_PER_SECOND > 0 ? 10 : 2;
    private static final int SEGMENT_SIZE = EVENTS_PER_SECOND > 0 ? 10_000 : 1_000;
    /** About as long as a move takes. */
    private static final int MOVE_MS = 1_000;

    private static final Duration DEADLINE = Duration.ofMinutes(3);

    @TempDir
    private Path folder;

    private final Map<String, Integer> injected = new TreeMap<>();
    private final List<ChildProcess> publishers = new ArrayList<>();
    private final List<ChildProcess> members = new ArrayList<>();
    private final List<ChildProcess> movers = new ArrayList<>();
    private final List<Path> acknowledgements = new ArrayList<>();
    private EmbeddedEventsDb database;
    private String urls;
    private boolean kills;
    private long longestPublishNanos;
    private long longestRecoveryNanos;
    private long publishingNanos;
    private volatile boolean stopped;

    static List<Boolean> runs() {
        boolean all = !"false".equals(System.getProperty("eventsql.test.kills"));
        return IntStream.range(0, RUNS).mapToObj(run -> all && run % 2 == 0).toList();
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
            new Migrator(new SqlSchema(settings.schema()), true)
                    .migrate(new Database(database.createDatabase("tables"), settings.networkTimeout()));
            for (int i = 0; i < SHARDS; i++) {
                database.createDatabase("shard" + i, "tables"); // which is faster than migrating each
                String url = database.jdbcUrl("shard" + i);
                all.add(url);
                pools.add(Pools.pool(url, database.username(), database.password(), config -> {
                    config.setConnectionTimeout(30_000);
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
            movers.forEach(ChildProcess::close);
            pools.forEach(HikariDataSource::close);
        }
    }

    private void run(Random random, EventSql eventSql, List<? extends DataSource> pools) throws Exception {
        Handled slow = new Handled();
        try (Subscription slowMember = eventSql.subscribe(ConsumerSpec.of(STREAM, "slow"), event -> {
                    if (event.offset() % 8 == 0) {
                        TimeUnit.MILLISECONDS.sleep(2);
                    }
                    slow.add(event);
                });
                Subscription replayingMember = eventSql.subscribe(ConsumerSpec.of(STREAM, "replay"), event -> {})) {
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
            long beganAt = System.nanoTime();
            Thread measuring = new Thread(() -> measure(eventSql), "measuring");
            measuring.start();
            if (EVENTS_PER_SECOND > 0) {
                joinAndLeave(random, eventSql);
            } else {
                moveAndKill(random, eventSql);
            }
            stopped = true;
            measuring.join();
            for (ChildProcess publisher : publishers) {
                publisher.finish();
            }
            publishingNanos = System.nanoTime() - beganAt;
            check(eventSql, pools, slow);
        }
    }

    private void moveAndKill(Random random, EventSql eventSql) throws Exception {
        List<Integer> target = List.of(0, 1, 2, 3, 4);
        int moves = 0;
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        while (System.nanoTime() - end < 0 || moves < 2) {
            move(random, target);
            moves++;
            target = moves == 1 ? List.of(0, 1, 2, 4) : choose(random);
            if (kills) {
                killSomething(random);
            }
            replaySometimes(random, eventSql);
        }
        System.out.println("MoveChaosIT: " + moves + " moves, " + injected);
    }

    /** Has two shards join after a third of the time, and one leave after another third. */
    private void joinAndLeave(Random random, EventSql eventSql) throws Exception {
        disturb(random, eventSql);
        move(random, List.of(0, 1, 2, 3, 4));
        disturb(random, eventSql);
        move(random, List.of(0, 1, 2, 4));
        disturb(random, eventSql);
    }

    /** Kills and replays for a third of the time. */
    private void disturb(Random random, EventSql eventSql) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS) / 3;
        while (System.nanoTime() - end < 0) {
            if (kills) {
                killSomething(random);
            }
            TimeUnit.MILLISECONDS.sleep(random.nextInt(500));
            replaySometimes(random, eventSql);
        }
    }

    /** Moves a consumer to the beginning, as soon as the databases answer. */
    private void replaySometimes(Random random, EventSql eventSql) {
        if (random.nextInt(3) == 0) {
            await().atMost(DEADLINE).ignoreExceptions().until(() -> {
                eventSql.consumer(STREAM, "replay").seek(StartPosition.EARLIEST);
                return true;
            });
            injected.merge("replay", 1, Integer::sum);
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
        movers.add(start("move"));
    }

    /** Has a process move keys; if it is killed, another one completes the move. */
    private void move(Random random, List<Integer> target) throws Exception {
        String shards = target.stream().map(String::valueOf).collect(Collectors.joining(","));
        while (kills && random.nextInt(2) == 0) {
            ChildProcess mover = movers.removeFirst();
            startMover();
            mover.awaitLine("READY");
            mover.send(shards);
            TimeUnit.MILLISECONDS.sleep(random.nextInt(MOVE_MS));
            mover.kill();
            injected.merge("mover", 1, Integer::sum);
        }
        ChildProcess mover = movers.removeFirst();
        startMover();
        mover.awaitLine("READY");
        mover.send(shards);
        mover.awaitLine("MOVED");
        mover.close();
    }

    private void killSomething(Random random) throws Exception {
        switch (random.nextInt(4)) {
            case 0 -> {
                publishers.remove(random.nextInt(publishers.size())).kill();
                startPublisher();
                injected.merge("publisher", 1, Integer::sum);
            }
            case 1 -> {
                long crashedAt = System.nanoTime();
                database.crash();
                TimeUnit.MILLISECONDS.sleep(random.nextInt(300));
                database.restart();
                longestRecoveryNanos = Math.max(longestRecoveryNanos, System.nanoTime() - crashedAt);
                injected.merge("databases", 1, Integer::sum);
            }
            default -> {
                members.remove(random.nextInt(members.size())).kill();
                startMember();
                injected.merge("member", 1, Integer::sum);
            }
        }
    }

    private void measure(EventSql eventSql) {
        for (int number = 1; !stopped; number++) {
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(5));
            String key = "measured-" + number % 20;
            long began = System.nanoTime();
            eventSql.publisher().publish(STREAM, Event.ofText(key, key + "/" + number));
            longestPublishNanos = Math.max(longestPublishNanos, System.nanoTime() - began);
        }
    }

    private void check(EventSql eventSql, List<? extends DataSource> pools, Handled slow) throws Exception {
        List<Ledger.Stored> stored = Ledger.read(STREAM, List.copyOf(pools));
        System.out.printf(
                "MEASURED MoveChaosIT: %d events, %.0f/s, kills: %s, longest publish %d ms, recovery of the databases %d ms, %s%n",
                stored.size(),
                stored.size() / (publishingNanos / 1e9),
                kills,
                TimeUnit.NANOSECONDS.toMillis(longestPublishNanos),
                TimeUnit.NANOSECONDS.toMillis(longestRecoveryNanos),
                injected);
        Set<String> values = new HashSet<>();
        Set<String> positions = new HashSet<>();
        for (Ledger.Stored event : stored) {
            assertThat(values.add(event.value())).as("stored once: %s", event).isTrue();
            positions.add(event.value() + " " + event.shard() + " " + event.partition() + " " + event.offset());
        }
        for (Path file : acknowledgements) {
            if (!Files.exists(file)) {
                continue; // killed before it had published
            }
            String text = Files.readString(file);
            assertThat(text.substring(0, text.lastIndexOf('\n') + 1).lines().filter(line -> !positions.contains(line)))
                    .as("acknowledged, but not stored there")
                    .isEmpty();
        }
        for (String consumer : List.of("plain", "slow")) {
            await().atMost(DEADLINE)
                    .ignoreExceptions()
                    .until(() -> eventSql.positions(STREAM, consumer).stream().allMatch(p -> p.lag() == 0));
        }
        for (ChildProcess member : members) {
            member.finish();
        }
        List<String> plain = Files.readString(folder.resolve("plain"))
                .lines()
                .filter(distinct(new HashSet<>()))
                .map(line -> line.substring(0, line.indexOf(' ')))
                .toList();
        assertHandled(plain, values, "handled by members in other processes");
        Set<Object> seen = new HashSet<>();
        assertHandled(
                slow.events().stream()
                        .filter(event -> seen.add(event.position()))
                        .map(event -> event.text())
                        .toList(),
                values,
                "handled by the slow consumer");
        Handled again = new Handled();
        try (Subscription member = eventSql.subscribe(ConsumerSpec.of(STREAM, "replay_at_the_end"), again::add)) {
            again.awaitSize(values.size());
            assertHandled(again.texts(), values, "replayed at the end");
            System.out.println("MoveChaosIT: 0 lost, 0 stored twice, 0 out of order for their key, by each consumer");
        }
    }

    private static Predicate<String> distinct(Set<String> seen) {
        return seen::add;
    }

    private static void assertHandled(List<String> handled, Set<String> stored, String what) {
        assertThat(new TreeSet<>(handled)).as(what).isEqualTo(new TreeSet<>(stored));
        assertThat(handled).as(what).hasSameSizeAs(stored);
        Map<String, Integer> last = new HashMap<>();
        for (String value : handled) {
            int slash = value.lastIndexOf('/');
            String key = value.substring(0, slash);
            int number = Integer.parseInt(value.substring(slash + 1));
            Integer before = last.put(key, number);
            assertThat(before == null || before < number)
                    .as("%s: %s after %s", what, value, before)
                    .isTrue();
        }
    }
}
