package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.StartPosition;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.HandlerMode;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.check.Acknowledgement;
import io.eventsql.fixture.check.HandledRecords;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.fixture.process.ChildProcess;
import io.eventsql.fixture.process.GrowthProcess;
import io.eventsql.fixture.process.MemberProcess;
import io.eventsql.fixture.process.PublisherGroup;
import java.io.IOException;
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
import java.util.stream.IntStream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Chaos test. Goal: a stream grows again and again while it is used. Whatever is killed, no acknowledged event is lost,
 * none is stored twice, and every consumer handles the events of each key in order: one with members in other processes, a slow
 * one, and one that replays.
 *
 * <p>Method: publishers, members and the growing process are child processes that get SIGKILL at seeded moments, and are
 * replaced; so does the database, which is restarted. A publisher of this process measures the longest call. {@code
 * -Deventsql.test.kills=false} kills nothing.
 *
 * <p>{@code -Deventsql.test.chaosSeconds=N} runs for N seconds instead of 6; {@code -Deventsql.test.seed=N} repeats the choices,
 * but not their timing. {@code -Deventsql.test.growthRuns=N -Deventsql.test.rate=R} is another load: N runs, in each of which a
 * stream of 10 partitions grows once, to 20, at R events with keys per second; every other run kills.
 */
class GrowthChaosIT {
    private static final long SECONDS = Long.getLong("eventsql.test.chaosSeconds", 6);
    private static final int RUNS = Integer.getInteger("eventsql.test.growthRuns", 1);
    private static final int EVENTS_PER_SECOND = Integer.getInteger("eventsql.test.rate", 0);
    private static final int PUBLISHERS = 2;
    private static final String STREAM = "growing";
    private static final int PARTITIONS = EVENTS_PER_SECOND > 0 ? 10 : 3;
    private static final int PARTITIONS_AFTERWARDS = 20;
    private static final int PARTITIONS_MAX = 200;
    private static final int MEMBERS = 2;
    private static final int PUBLISH_PAUSE_MAX_MS = 250;
    private static final Duration DEADLINE = Duration.ofMinutes(2);

    @TempDir
    private Path folder;

    private final Map<String, Integer> injected = new TreeMap<>();
    private final List<MemberProcess> members = new ArrayList<>();
    private final List<Acknowledgement> measured = new ArrayList<>();
    private boolean kills;
    private int startedMembers;
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
    void grow_randomKills_nothingIsLostRepeatedOrReordered(boolean withKills) throws Exception {
        kills = withKills;
        Random random = Seeds.random("GrowthChaosIT");
        Settings settings = Settings.builder()
                .publishTimeout(Duration.ofMinutes(2))
                .networkTimeout(Duration.ofSeconds(5))
                .build();
        try (EmbeddedEventsDb database = EmbeddedEventsDb.builder().start();
                HikariDataSource pool = Pools.pool(database);
                EventSql eventSql = EventSql.builder(pool).settings(settings).build();
                PublisherGroup publishers = new PublisherGroup(
                        database, STREAM, folder, random, PUBLISH_PAUSE_MAX_MS, EVENTS_PER_SECOND / PUBLISHERS)) {
            eventSql.createStream(TestStreams.of(STREAM)
                    .withPartitions(PARTITIONS)
                    .withSegmentSize(EVENTS_PER_SECOND > 0 ? 10_000 : 1_000));
            Handled slow = new Handled();
            try (Subscription slowMember = eventSql.subscribe(ConsumerSpec.of(STREAM, "slow"), event -> {
                        if (event.offset() % 8 == 0) {
                            TimeUnit.MILLISECONDS.sleep(2);
                        }
                        slow.add(event);
                    });
                    Subscription replayingMember = eventSql.subscribe(ConsumerSpec.of(STREAM, "replay"), event -> {})) {
                while (members.size() < MEMBERS) {
                    startMember(database);
                }
                publishers.start(PUBLISHERS);
                long beganAt = System.nanoTime();
                Thread measuring = new Thread(() -> measure(eventSql), "measuring");
                measuring.start();
                int partitions = EVENTS_PER_SECOND > 0
                        ? growOnce(random, database, eventSql, publishers)
                        : growAndKill(random, database, eventSql, publishers);
                stopped = true;
                measuring.join();
                publishers.finish();
                publishingNanos = System.nanoTime() - beganAt;
                check(eventSql, pool, publishers, slow, partitions);
                checkReplay(eventSql, pool);
            }
        }
    }

    /** Grows the stream step by step, each as often as the growing process is killed. Returns its last number of partitions. */
    private int growAndKill(Random random, EmbeddedEventsDb database, EventSql eventSql, PublisherGroup publishers)
            throws Exception {
        int partitions = PARTITIONS;
        int growths = 0;
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        while (System.nanoTime() - end < 0 || growths < 2) {
            partitions = Math.min(PARTITIONS_MAX, partitions + 1 + random.nextInt(4));
            while (!grow(random, database, partitions)) {
                injected.merge("grower", 1, Integer::sum);
            }
            growths++;
            disturb(random, database, eventSql, publishers);
        }
        System.out.println("GrowthChaosIT: " + growths + " growths to " + partitions + " partitions, " + injected);
        return partitions;
    }

    /** Grows the stream after a quarter of the time, to its last number of partitions, which is returned. */
    private int growOnce(Random random, EmbeddedEventsDb database, EventSql eventSql, PublisherGroup publishers)
            throws Exception {
        long beganAt = System.nanoTime();
        long end = beganAt + TimeUnit.SECONDS.toNanos(SECONDS);
        while (System.nanoTime() - beganAt < (end - beganAt) / 4) {
            disturb(random, database, eventSql, publishers);
        }
        while (!grow(random, database, PARTITIONS_AFTERWARDS)) {
            injected.merge("grower", 1, Integer::sum);
            disturb(random, database, eventSql, publishers);
        }
        while (System.nanoTime() - end < 0) {
            disturb(random, database, eventSql, publishers);
        }
        return PARTITIONS_AFTERWARDS;
    }

    private void disturb(Random random, EmbeddedEventsDb database, EventSql eventSql, PublisherGroup publishers)
            throws Exception {
        if (kills) {
            killSomething(random, database, publishers);
        } else {
            TimeUnit.MILLISECONDS.sleep(random.nextInt(500));
        }
        if (random.nextInt(3) == 0) {
            replay(eventSql);
            injected.merge("replay", 1, Integer::sum);
        }
    }

    /** Moves a consumer to the beginning, as soon as the database answers. */
    private static void replay(EventSql eventSql) {
        await().atMost(DEADLINE).ignoreExceptions().until(() -> {
            eventSql.consumer(STREAM, "replay").seek(StartPosition.EARLIEST);
            return true;
        });
    }

    /** Runs a growing process; returns {@code false} if it was killed. */
    private boolean grow(Random random, EmbeddedEventsDb database, int partitions) throws Exception {
        try (ChildProcess process = new ChildProcess(
                folder,
                GrowthProcess.class,
                List.of(
                        database.jdbcUrl(),
                        database.username(),
                        database.password(),
                        STREAM,
                        Integer.toString(partitions)))) {
            process.awaitLine("READY");
            if (kills && random.nextInt(3) == 0) {
                TimeUnit.MILLISECONDS.sleep(random.nextInt(150));
                process.kill();
                return false;
            }
            process.awaitLine("DONE");
            return true;
        }
    }

    private void killSomething(Random random, EmbeddedEventsDb database, PublisherGroup publishers) throws Exception {
        switch (random.nextInt(4)) {
            case 0 -> {
                publishers.replaceOne(random.nextInt(PUBLISHERS));
                injected.merge("publisher", 1, Integer::sum);
            }
            case 1 -> {
                long crashedAt = System.nanoTime();
                database.crash();
                TimeUnit.MILLISECONDS.sleep(random.nextInt(300));
                database.restart();
                longestRecoveryNanos = Math.max(longestRecoveryNanos, System.nanoTime() - crashedAt);
                injected.merge("database", 1, Integer::sum);
            }
            default -> {
                MemberProcess victim = members.remove(random.nextInt(members.size()));
                victim.kill();
                startMember(database);
                injected.merge("member", 1, Integer::sum);
            }
        }
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

    /** Publishes one event after the other, and measures how long each call takes. */
    private void measure(EventSql eventSql) {
        for (int number = 1; !stopped; number++) {
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(5));
            String key = "measured-" + number % 20;
            String value = key + "/" + number;
            long began = System.nanoTime();
            EventPosition at = eventSql.publisher().publish(STREAM, Event.ofText(key, value));
            longestPublishNanos = Math.max(longestPublishNanos, System.nanoTime() - began);
            measured.add(new Acknowledgement(value, at.shard(), at.partition(), at.offset(), System.nanoTime()));
        }
    }

    private void check(
            EventSql eventSql, HikariDataSource pool, PublisherGroup publishers, Handled slow, int partitions)
            throws Exception {
        List<Ledger.Stored> stored = Ledger.read(STREAM, List.of(pool));
        System.out.printf(
                "MEASURED GrowthChaosIT: %d events, %.0f/s, from %d to %d partitions, kills: %s, longest publish %d ms,"
                        + " recovery of the database %d ms, %s%n",
                stored.size(),
                stored.size() / (publishingNanos / 1e9),
                PARTITIONS,
                partitions,
                kills,
                TimeUnit.NANOSECONDS.toMillis(longestPublishNanos),
                TimeUnit.NANOSECONDS.toMillis(longestRecoveryNanos),
                injected);
        Ledger.assertGapless(stored);
        assertInOrder(stored.stream().map(Ledger.Stored::value).toList(), "stored");
        Set<String> positions = new HashSet<>();
        Set<String> values = new HashSet<>();
        for (Ledger.Stored event : stored) {
            assertThat(values.add(event.value())).as("stored once: %s", event).isTrue();
            positions.add(event.value() + " " + event.partition() + " " + event.offset());
        }
        List<Acknowledgement> acknowledged = new ArrayList<>(publishers.acknowledged());
        acknowledged.addAll(measured);
        // Of tens of thousands of events: AssertJ's own comparisons of collections compare each with each.
        assertThat(acknowledged.stream()
                        .map(one -> one.value() + " " + one.partition() + " " + one.offset())
                        .filter(position -> !positions.contains(position)))
                .as("acknowledged, but not stored there")
                .isEmpty();
        assertThat(stored.stream().mapToInt(Ledger.Stored::partition).max().orElseThrow())
                .as("new partitions are used")
                .isBetween(PARTITIONS, partitions - 1);

        for (String consumer : List.of("plain", "slow")) {
            await().atMost(DEADLINE)
                    .ignoreExceptions()
                    .until(() -> eventSql.positions(STREAM, consumer).stream().allMatch(p -> p.lag() == 0));
        }
        for (MemberProcess member : members) {
            member.close();
        }
        HandledRecords.read(folder.resolve("plain")).verifyEveryKey(stored);
        List<String> first = slow.events().stream()
                .filter(distinctPositions())
                .map(StoredEvent::text)
                .toList();
        assertThat(new TreeSet<>(first)).as("handled by the slow consumer").isEqualTo(new TreeSet<>(values));
        assertThat(first).hasSameSizeAs(values);
        assertInOrder(first, "handled by the slow consumer");
    }

    /** A replay begins at the beginning, when there is nothing that could repeat an event. */
    private static void checkReplay(EventSql eventSql, HikariDataSource pool) throws Exception {
        List<String> values = Ledger.read(STREAM, List.of(pool)).stream()
                .map(Ledger.Stored::value)
                .toList();
        Handled again = new Handled();
        try (Subscription member = eventSql.subscribe(ConsumerSpec.of(STREAM, "replay_at_the_end"), again::add)) {
            again.awaitSize(values.size());
            assertThat(new TreeSet<>(again.texts())).isEqualTo(new TreeSet<>(values));
            assertThat(again.texts()).hasSameSizeAs(values);
            assertInOrder(again.texts(), "replayed");
            System.out.println("GrowthChaosIT: 0 lost, 0 stored twice, 0 out of order for their key, by each consumer");
        }
    }

    private static Predicate<StoredEvent> distinctPositions() {
        Set<EventPosition> seen = new HashSet<>();
        return event -> seen.add(event.position());
    }

    /** Asserts that the numbers of each name increase, in {@code <name>/<number>}; those without a key have no order. */
    private static void assertInOrder(List<String> values, String what) {
        Map<String, Integer> last = new HashMap<>();
        for (String value : values) {
            int slash = value.lastIndexOf('/');
            String name = value.substring(0, slash);
            int number = Integer.parseInt(value.substring(slash + 1));
            Integer before = last.put(name, number);
            assertThat(before == null || before < number || name.endsWith("-"))
                    .as("%s: %s after %s", what, value, before)
                    .isTrue();
        }
    }
}
