package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.StoredEvent;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.SharedServerDatabase;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.check.Acknowledgement;
import io.eventsql.fixture.check.Ledger;
import io.eventsql.fixture.process.ChildProcess;
import io.eventsql.fixture.process.PublisherProcess;
import java.io.IOException;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: while several processes publish to the same partitions and some of them are killed, offsets are gapless and become
 * visible in order: no event ever appears before the end that a reader has seen. Every acknowledged event is stored exactly
 * once at the acknowledged position, and the events of each key are in call order.
 *
 * <p>Method: two Java processes publish singly, asynchronously and in batches, with and without keys; twice, one of them is
 * killed (SIGKILL) at a seeded moment and replaced. Each writes its acknowledgements to a file before its next call.
 * Concurrently, one reader follows each partition through {@link EventSql#read}, and another one counts the events from a
 * moving offset in a single SQL statement. At the end, files and table are compared.
 *
 * <p>{@code -Deventsql.test.kills=N} kills N times instead of 2.
 */
class ConcurrentPublishersIT {
    private static final String STREAM = "shared";
    private static final int PARTITIONS = 2;
    private static final int PROCESSES = 2;
    private static final int KILLS = Integer.getInteger("eventsql.test.kills", 2);
    private static final int PUBLISH_PAUSE_MAX_MS = 200;
    private static final int KILL_INTERVAL_MS_MIN = 500;
    private static final int KILL_INTERVAL_MS_MAX = 2_000;
    /** How many events before the end the counting reader includes. */
    private static final int WINDOW_EVENTS = 500;

    private final List<Publisher> publishers = new ArrayList<>();
    private final ConcurrentLinkedQueue<Throwable> readerFailures = new ConcurrentLinkedQueue<>();
    private volatile boolean readersStop;

    @TempDir
    private Path folder;

    @AfterEach
    void killPublishers() {
        publishers.forEach(publisher -> publisher.process().close());
    }

    /** A publishing process and the file of its acknowledgements. */
    private record Publisher(ChildProcess process, Path acknowledgements) {
        static Publisher start(EventsDb eventsDb, Path folder, String name, long seed) throws IOException {
            Path acknowledgements = folder.resolve(name);
            return new Publisher(
                    new ChildProcess(
                            folder,
                            PublisherProcess.class,
                            List.of(
                                    eventsDb.jdbcUrl(),
                                    eventsDb.username(),
                                    eventsDb.password(),
                                    STREAM,
                                    name,
                                    acknowledgements.toString(),
                                    Long.toString(seed),
                                    Integer.toString(PUBLISH_PAUSE_MAX_MS))),
                    acknowledgements);
        }

        boolean hasPublished() {
            return acknowledgements.toFile().length() > 0;
        }
    }

    @Test
    void publish_severalProcessesSomeKilled_offsetsAreGaplessAndVisibleInOrder() throws Exception {
        Random random = Seeds.random("ConcurrentPublishersIT");
        try (EventsDb eventsDb = SharedServerDatabase.create();
                HikariDataSource pool = Pools.pool(eventsDb);
                EventSql eventSql = EventSql.builder(pool)
                        .settings(PublisherProcess.settings().build())
                        .build()) {
            eventSql.createStream(
                    TestStreams.of(STREAM).withPartitions(PARTITIONS).withSegmentSize(1_000));
            Thread following = reader("following", () -> follow(eventSql));
            Thread counting = reader("counting", () -> count(pool));

            for (int i = 0; i < PROCESSES; i++) {
                publishers.add(Publisher.start(eventsDb, folder, "p" + i, random.nextLong()));
            }
            for (Publisher publisher : publishers) {
                publisher.process().awaitLine("READY");
            }
            await().until(() -> publishers.stream().allMatch(Publisher::hasPublished));
            List<Publisher> all = new ArrayList<>(publishers);
            for (int kill = 0; kill < KILLS; kill++) {
                TimeUnit.MILLISECONDS.sleep(random.nextInt(KILL_INTERVAL_MS_MIN, KILL_INTERVAL_MS_MAX));
                int victim = random.nextInt(PROCESSES);
                publishers.get(victim).process().kill();
                Publisher successor = Publisher.start(eventsDb, folder, "p" + (PROCESSES + kill), random.nextLong());
                publishers.set(victim, successor);
                all.add(successor);
                successor.process().awaitLine("READY");
                await().until(successor::hasPublished);
            }
            for (Publisher publisher : publishers) {
                publisher.process().finish();
            }
            readersStop = true;
            following.join();
            counting.join();
            assertThat(readerFailures).isEmpty();
            verify(all, Ledger.read(STREAM, List.of(pool)));
        }
    }

    private interface Reading {
        void run() throws Exception;
    }

    private Thread reader(String name, Reading reading) {
        return Thread.ofPlatform().name("reader-" + name).start(() -> {
            try {
                reading.run();
            } catch (Throwable e) {
                readerFailures.add(e);
            }
        });
    }

    /** Yields the processors to the publishers. */
    private static void pause() throws InterruptedException {
        TimeUnit.MILLISECONDS.sleep(25);
    }

    /** Reads each partition from where the last read ended; each event must have the next offset. */
    private void follow(EventSql eventSql) throws InterruptedException {
        long[] next = new long[PARTITIONS];
        while (!readersStop) {
            pause();
            for (int partition = 0; partition < PARTITIONS; partition++) {
                for (StoredEvent event :
                        eventSql.read(new EventPosition(STREAM, 0, partition, next[partition]), 1_000)) {
                    assertThat(event.offset()).isEqualTo(next[partition]++);
                }
            }
        }
    }

    /** Counts, in one snapshot, the events between an old offset and the visible end. */
    private void count(HikariDataSource pool) throws Exception {
        long[] ends = new long[PARTITIONS];
        try (Connection connection = pool.getConnection();
                PreparedStatement statement = connection.prepareStatement("SELECT count(*), max(event_offset)"
                        + " FROM eventsql.events_" + STREAM + " WHERE partition = ? AND event_offset >= ?")) {
            while (!readersStop) {
                pause();
                for (int partition = 0; partition < PARTITIONS; partition++) {
                    long from = Math.max(0, ends[partition] - WINDOW_EVENTS);
                    statement.setInt(1, partition);
                    statement.setLong(2, from);
                    try (ResultSet row = statement.executeQuery()) {
                        row.next();
                        long count = row.getLong(1);
                        long end = count == 0 ? from : row.getLong(2) + 1;
                        assertThat(count)
                                .as("events of partition %s from %s to %s", partition, from, end)
                                .isEqualTo(end - from);
                        assertThat(end).isGreaterThanOrEqualTo(ends[partition]);
                        ends[partition] = end;
                    }
                }
            }
        }
    }

    private static void verify(List<Publisher> publishers, List<Ledger.Stored> stored) throws IOException {
        Ledger.assertGapless(stored);
        Map<String, Ledger.Stored> byValue = new HashMap<>();
        Map<String, Integer> lastNumbers = new HashMap<>();
        for (Ledger.Stored event : stored) {
            assertThat(byValue.put(event.value(), event))
                    .as("stored twice: %s", event)
                    .isNull();
            if (event.key() != null) {
                int number =
                        Integer.parseInt(event.value().substring(event.key().length() + 1));
                Integer last = lastNumbers.put(event.key(), number);
                assertThat(last == null ? 0 : last).as("before %s", event).isLessThan(number);
            }
        }
        Map<String, Integer> acknowledged = new TreeMap<>();
        for (Publisher publisher : publishers) {
            for (Acknowledgement one : Acknowledgement.read(publisher.acknowledgements())) {
                Ledger.Stored event = byValue.get(one.value());
                assertThat(event).as("acknowledged %s", one).isNotNull();
                assertThat(new EventPosition(STREAM, event.shard(), event.partition(), event.offset()))
                        .as("acknowledged %s", one)
                        .isEqualTo(new EventPosition(STREAM, one.shard(), one.partition(), one.offset()));
                acknowledged.merge(publisher.acknowledgements().getFileName().toString(), 1, Integer::sum);
            }
        }
        System.out.println(stored.size() + " events stored; acknowledged by process: " + acknowledged);
        assertThat(acknowledged).hasSameSizeAs(publishers);
        assertThat(stored.stream().map(Ledger.Stored::partition).distinct()).hasSize(PARTITIONS);
    }
}
